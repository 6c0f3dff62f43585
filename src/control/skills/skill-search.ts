/** Searches the full texts of skills, and offers that as the tool skills_search. */

import { createHybridIndex, type Entry } from '../../discovery/hybrid-index.ts'
import type { Tool } from '../../runtime/port.ts'
import type { Skill } from './skill.ts'

/** Returns the best first. An empty query finds every skill. */
export type SkillSearch = (query: string, limit: number) => readonly Skill[]

/** No character of a query has a special meaning. */
export function openSkillSearch(skills: readonly Skill[]): SkillSearch {
  const index = createHybridIndex<Entry & { readonly skill: Skill }>()
  index.put(
    skills.map((skill) => {
      const context = `${skill.invoke.map(({ source }) => source).join(' ')} ${skill.content}`
      return { kind: 'skill', source: 'library', name: skill.name, description: skill.summary, context, skill }
    }),
  )
  return (query, limit) => (query.trim() === '' ? skills.slice(0, limit) : index.search(query, { limit }).map(({ entry }) => entry.skill))
}

/** Makes the tool skills_search, which reads only the library. */
export function skillsSearchTool(search: SkillSearch): Tool {
  return {
    ...skillsSearchSpec,
    risk: 'low',
    timeoutMs: 10_000,
    idempotent: true,
    touches: () => [],
    async invoke({ query }) {
      const text = typeof query === 'string' ? query : ''
      const hits = search(text, text.trim() === '' ? 1000 : mostHits)
      return { success: true, output: skillsAnswer(text, hits), metadata: { hits: hits.length } }
    },
  }
}

export const skillsSearchSpec = {
  name: 'skills_search',
  description: 'Finds a skill by its name or by words, and returns its full text: how something is done here, step by step.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'The name of a skill, or some words; empty: the names of all skills' } },
    required: ['query'],
    additionalProperties: false,
  },
} as const

const mostHits = 10
const maxText = 65_536

export function skillsAnswer(query: string, hits: readonly Skill[]): string {
  const [best, ...others] = hits
  if (!best) return `No skill matches ${JSON.stringify(query.slice(0, 200))}. Try other words, or an empty query for all names.`
  if (query.trim() === '') return hits.map(lineOf).join('\n')
  const rest = others.length === 0 ? '' : `\n\nOther skills that match:\n${others.map(lineOf).join('\n')}`
  return `${textOf(best)}${rest}`
}

function lineOf({ name, summary }: Skill): string {
  return `- ${name}: ${summary}`
}

function textOf({ name, summary, content, command }: Skill): string {
  const text = content.length > maxText ? `${content.slice(0, maxText)}\n(cut here: the text has ${content.length} characters)` : content
  const run = command ? `\n\nCommand: ${command.map((word) => JSON.stringify(word)).join(' ')}` : ''
  return `# ${name}\n\n${summary}${text.trim() === '' ? '' : `\n\n${text.trim()}`}${run}`
}
