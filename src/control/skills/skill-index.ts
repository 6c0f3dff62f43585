/** Writes the compact index of an agent's skills, which becomes part of its system prompt. */

import { type Skill, type SkillOwner, skillsOf } from './skill.ts'

const heading = `# Skills

These skills are written down. Before you do what one of them is about, call the tool skills_search with its name, and do what its text says.
`

/** About 2,000 tokens. */
const maxBytes = 8_192

/** The same library always gives the same text; empty when the agent has no skill. A library too large for it is cut, and says so. */
export function skillIndex(skills: readonly Skill[], owner: SkillOwner): string {
  const own = skillsOf(skills, owner)
  if (own.length === 0) return ''
  const lines: string[] = []
  let bytes = Buffer.byteLength(heading) + 100
  for (const { name, summary } of own) {
    const line = `- ${name}: ${summary}`
    bytes += Buffer.byteLength(line) + 1
    if (bytes > maxBytes) break
    lines.push(line)
  }
  const left = own.length - lines.length
  const rest = left === 0 ? [] : [`- and ${left} more: find them with skills_search`]
  return `${[heading, ...lines, ...rest].join('\n')}\n`
}
