/** Reads SKILL.md files by the format of agentskills.io: leniently, with a warning for what is not as it should be. */

import { basename, dirname, join } from 'node:path'
import { errorText } from '../kit/errors.ts'
import { isObject } from '../kit/json.ts'
import { findFiles, type TextFiles } from './text-files.ts'

/** `location` is the absolute path of SKILL.md, `skillDir` its folder. */
export type SkillMetadata = Readonly<Record<'name' | 'description' | 'location' | 'skillDir', string>> & {
  readonly license?: string | undefined
  readonly compatibility?: string | undefined
  readonly metadata?: { readonly [key: string]: string } | undefined
  readonly allowedTools?: readonly string[] | undefined
}

export type Skill = { readonly skill: SkillMetadata; readonly body: string; readonly warnings: readonly string[] }

export type ParseSkill = Awaited<ReturnType<typeof loadSkillParser>>

/** Loads the reader of YAML. */
export async function loadSkillParser() {
  const split = await loadFrontMatter()
  return (text: string, location: string) => parseSkill(split(text), location)
}

export const skillName = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/

type FrontMatter = { readonly fields?: { readonly [name: string]: unknown }; readonly broken?: string | undefined; readonly body: string }

/** Returns what splits a text into the fields of its front matter, what is wrong with them, and the text below. */
export async function loadFrontMatter(): Promise<(text: string) => FrontMatter> {
  const { parse } = await import('yaml')
  return (text) => {
    const [, head, body = ''] = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(text) ?? []
    if (head === undefined) return { body: text }
    const [fields, broken] = fieldsOf(head, parse)
    return { fields, broken, body }
  }
}

/** Returns the skill, or why there is none: only a missing description and YAML that stays unreadable make it unusable. Never throws. */
function parseSkill({ fields, broken, body }: FrontMatter, location: string): Skill | string {
  if (fields === undefined && broken === undefined) return 'it does not begin with "---", a name and a description'
  if (fields === undefined) return `its YAML cannot be read: ${broken}`
  const skillDir = dirname(location)
  const description = textOf(fields.description)?.trim() ?? ''
  if (description === '') return 'it has no description'
  const name = textOf(fields.name)?.trim() || basename(skillDir)
  const faults = {
    [`not valid YAML (${broken}); values with a colon were quoted`]: broken !== undefined,
    'the name should have 1 to 64 characters a-z, 0-9 and -': !skillName.test(name),
    'the name should be that of the folder': name !== basename(skillDir),
    'the description should have at most 1024 characters': description.length > 1_024,
  }
  const { license, compatibility, metadata, 'allowed-tools': tools } = fields
  const skill = {
    ...{ name, description, location, skillDir, license: textOf(license), compatibility: textOf(compatibility) },
    metadata: isObject(metadata) ? Object.fromEntries(Object.entries(metadata).map(([key, one]) => [key, textOf(one) ?? ''])) : undefined,
    allowedTools: wordsOf(tools),
  }
  return { skill, body: body.trim(), warnings: Object.entries(faults).flatMap(([fault, isThere]) => (isThere ? [fault] : [])) }
}

/** Splits a list such as `Read, Bash(git add:*)`, whose parentheses may hold spaces. */
export function wordsOf(list: unknown): readonly string[] | undefined {
  return (Array.isArray(list) ? list.join(' ') : textOf(list))?.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? undefined
}

type ParseYaml = typeof import('yaml').parse

/** Quotes values with a colon where the text cannot be read as it is. @returns the fields, and what is wrong with the text as it is */
function fieldsOf(head: string, parse: ParseYaml): readonly [fields?: { readonly [name: string]: unknown }, broken?: string] {
  const quoted = head.replaceAll(
    /^([\w-]+):[ \t]+([^"'|>[{\s].*:.*)$/gm,
    (_, key: string, value: string) => `${key}: ${JSON.stringify(value.trim())}`,
  )
  const faults: string[] = []
  for (const text of [head, quoted])
    try {
      const value: unknown = parse(text, { prettyErrors: false, logLevel: 'error', maxAliasCount: 100 })
      if (isObject(value)) return [value, faults[0]]
      faults.push('it is not a list of fields')
    } catch (error) {
      faults.push(errorText(error))
    }
  return [undefined, faults[0]]
}

export function textOf(value: unknown): string | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** Returns what a skill is found by. Its text would say too much about other things. */
export function skillEntry({ skill, source }: Pick<FoundSkill, 'skill' | 'source'>) {
  const { name, description, metadata = {} } = skill
  return { kind: 'skill', source, name, description, params: Object.values(metadata).join(' ') }
}

/** `files` read below `root`, where `path` is the folder of the skills; links are followed only to folders in `within`. */
type SkillRoot = Readonly<Record<'root' | 'path' | 'source', string>> & { readonly files: TextFiles; readonly within?: string | undefined }

export type FoundSkill = Skill & { readonly source: string }

export const maxSkillBytes = 262_144

/** Reads the skills of several folders; of two with one name the first counts, and a notice names the other. */
export async function readSkills(roots: readonly SkillRoot[]) {
  const parse = await loadSkillParser()
  const [skills, notices]: [Map<string, FoundSkill>, string[]] = [new Map(), []]
  for (const { root, path, source, files, within } of roots) {
    const { found, notices: unsearched } = findFiles(join(root, path), { names: ['SKILL.md'], isLeaf: true, within })
    notices.push(...unsearched)
    for (const each of found) {
      const location = join(root, path, each)
      const text = files.readText(join(path, each), { maxBytes: maxSkillBytes })
      const read = text.ok ? parse(text.text, location) : text.message
      if (text.ok && text.more) notices.push(`${location}: only the first ${maxSkillBytes} of ${text.size} bytes are read`)
      if (typeof read === 'string') notices.push(`${location} is not a usable skill: ${read}`)
      if (typeof read === 'string') continue
      notices.push(...read.warnings.map((warning) => `${location}: ${warning}`))
      const other = skills.get(read.skill.name)
      if (other) notices.push(`${location} is left out: ${other.skill.location} has the same name, ${other.skill.name}`)
      else skills.set(read.skill.name, { ...read, source })
    }
  }
  return { skills: [...skills.values()], notices }
}
