/** Reads agent/library.yaml with the files that it names, and writes the index of an agent's skills. It runs on Node too. */

import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { errorText, hasCode } from '../../kit/errors.ts'
import { type Skill, type SkillOwner, skillsOf } from './skill.ts'
import { type LibraryProblem, type ReadContent, readSkillLibrary } from './skill-library.ts'

export type LibraryFile =
  | { readonly ok: true; readonly skills: readonly Skill[] }
  | { readonly ok: false; readonly isMissing: boolean; readonly problems: readonly LibraryProblem[]; readonly message: string }

const maxContentBytes = 262_144

export function readLibraryFile(file: string): LibraryFile {
  const text = textOf(file)
  if (!text.ok) return { ok: false, isMissing: text.isMissing, problems: [], message: text.message }
  const read = readSkillLibrary(text.text, contentReader(dirname(file)))
  if (read.ok) return read
  const lines = read.problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`)
  return { ok: false, isMissing: false, problems: read.problems, message: lines.join('\n') }
}

/** Reads a file of a skill only below the folder of the library, also after links are followed. */
function contentReader(folder: string): ReadContent {
  return (path) => {
    if (isAbsolute(path) || path.split(/[/\\]/).includes('..')) return refused(path, 'must be relative, without "..", below the library')
    try {
      const [root, file] = [realpathSync(folder), realpathSync(join(folder, path))]
      if (!file.startsWith(`${root}${sep}`)) return refused(path, 'leads out of the folder of the library')
      const { size } = statSync(file)
      if (size > maxContentBytes) return refused(path, `has ${size} bytes; at most ${maxContentBytes} are allowed`)
      return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)) }
    } catch (error) {
      return refused(path, error instanceof TypeError ? 'is not UTF-8' : reasonOf(error))
    }
  }
}

function refused(path: string, why: string) {
  return { ok: false, message: `${JSON.stringify(path)} ${why}` } as const
}

function textOf(file: string) {
  try {
    return { ok: true, text: readFileSync(file, 'utf8') } as const
  } catch (error) {
    return { ok: false, isMissing: hasCode(error, 'ENOENT'), message: `${JSON.stringify(file)} ${reasonOf(error)}` } as const
  }
}

function reasonOf(error: unknown): string {
  return hasCode(error, 'ENOENT') ? 'does not exist' : `cannot be read: ${errorText(error)}`
}

const heading = `# Skills

These skills are written down. Before you do what one of them is about, call the tool skills_search with its name, and do what its text says.
`

/** Limits the index to about 2,000 tokens. */
const maxBytes = 8_192

/** Returns the index, always the same for the same library; empty when the agent has no skill. A long index is cut, with a note. */
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
