/** Reads agent/library.yaml and reports everything that is wrong with it at once, each by line and column. */

import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { errorText } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { name } from '../contract/task-shapes.ts'
import type { Invoke, Skill } from './skill.ts'
import { compileInvoke } from './skill.ts'

/** Line and column count from 1. */
export type LibraryProblem = { readonly line: number; readonly column: number; readonly message: string }

type ReadLibrary =
  | { readonly ok: true; readonly skills: readonly Skill[] }
  | { readonly ok: false; readonly problems: readonly LibraryProblem[] }

/** Returns the text of the file that a skill names, or says why not. */
export type ReadContent = (path: string) => { readonly ok: true; readonly text: string } | { readonly ok: false; readonly message: string }

const maxBytes = 4_194_304

type Path = readonly PropertyKey[]

export function readSkillLibrary(text: string, readContent: ReadContent): ReadLibrary {
  if (text.length > maxBytes) return problem(`the library has more than ${maxBytes} characters`)
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
  const at = (offset: number) => ({ line: lines.linePos(offset).line, column: lines.linePos(offset).col })
  const broken = [...document.errors, ...document.warnings].map(({ pos, message }) => ({ ...at(pos[0]), message }))
  if (broken.length > 0) return { ok: false, problems: broken }
  const value = plainValue(document)
  if (!value.ok) return problem(value.message)
  const problems: LibraryProblem[] = []
  const report: ReportProblem = (path, message) => void problems.push({ ...at(offsetOf(document, path)), message: withPath(path, message) })
  const skills = skillsIn(value.value, { report, readContent })
  problems.sort((a, b) => a.line - b.line || a.column - b.column)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, skills }
}

type ReportProblem = (path: Path, message: string) => void

/** Checks the valid parts of every entry, also when another entry is wrong, so that everything is reported at once. */
function skillsIn(
  value: unknown,
  { report, readContent }: { readonly report: ReportProblem; readonly readContent: ReadContent },
): readonly Skill[] {
  const { library, skill } = librarySchemas()
  for (const issue of library.safeParse(value).error?.issues ?? []) {
    if (issue.code !== 'unrecognized_keys') report(issue.path, issue.message)
    else for (const key of issue.keys) report([...issue.path, key], 'unknown field')
  }
  const entries: readonly unknown[] = isObject(value) && Array.isArray(value.skills) ? value.skills.slice(0, 1000) : []
  const skills = entries.map((entry, index) => {
    const { data } = skill.safeParse(entry)
    return data && skillOf(data, { report, readContent, path: ['skills', index] })
  })
  for (const index of repeated(skills)) report(['skills', index], `the skill ${skills[index]?.name} is there twice`)
  return skills.filter((one) => one !== undefined)
}

/** Converts the document. An alias may repeat a value, but not so often that a small file becomes a large one. */
function plainValue(document: Document): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string } {
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: 100 }) }
  } catch (error) {
    return { ok: false, message: errorText(error) }
  }
}

type EntryContext = { readonly report: ReportProblem; readonly readContent: ReadContent; readonly path: Path }

function skillOf(entry: LibraryEntry, { report, readContent, path }: EntryContext): Skill {
  const { summary, roles = [], agents = [], command } = entry
  if ((entry.name === undefined) === (entry.id === undefined)) report(path, 'a skill has a "name" (or, in its place, an "id")')
  if (entry.content !== undefined && entry.path !== undefined) report([...path, 'path'], 'either "content" or "path", not both')
  return {
    ...{ name: entry.name ?? entry.id ?? '', summary, roles, agents },
    invoke: invokesOf(entry.invoke, { report, path: [...path, 'invoke'] }),
    content: entry.content ?? contentOf(entry.path, { report, readContent, path: [...path, 'path'] }),
    command,
  }
}

function invokesOf(patterns: LibraryEntry['invoke'], { report, path }: Omit<EntryContext, 'readContent'>): readonly Invoke[] {
  const sources = typeof patterns === 'string' ? [patterns] : (patterns ?? [])
  return sources.flatMap((source, index) => {
    const compiled = compileInvoke(source)
    if (!compiled.ok) report(typeof patterns === 'string' ? path : [...path, index], compiled.message)
    return compiled.ok ? [compiled.invoke] : []
  })
}

function contentOf(file: string | undefined, { report, readContent, path }: EntryContext): string {
  if (file === undefined) return ''
  const read = readContent(file)
  if (!read.ok) report(path, read.message)
  return read.ok ? read.text : ''
}

function repeated(skills: readonly (Skill | undefined)[]): readonly number[] {
  return skills.flatMap((skill, index) => (skill && skills.findIndex((other) => other?.name === skill.name) < index ? [index] : []))
}

/** Returns where the value at this path begins, or its nearest parent. */
function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true)
    if ((isMap(node) || isScalar(node) || isNode(node)) && node.range) return node.range[0]
  }
  return 0
}

function isNode(value: unknown): value is { readonly range?: readonly [number, number, number] | null } {
  return typeof value === 'object' && value !== null && 'range' in value
}

function withPath(path: Path, message: string): string {
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}

function problem(message: string): ReadLibrary {
  return { ok: false, problems: [{ line: 1, column: 1, message }] }
}

const line = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line without control characters')
const names = z.optional(z.array(name).max(100))

/** Builds the schemas when the first library is read. */
function librarySchemas() {
  const skill = z.strictObject({
    name: z.optional(name),
    id: z.optional(name),
    summary: line(300),
    roles: names,
    agents: names,
    invoke: z.optional(z.union([line(1000), z.array(line(1000)).max(50)])),
    content: z.optional(z.string().max(262_144)),
    path: z.optional(line(500)),
    command: z.optional(z.array(line(1000)).min(1).max(50)),
  })
  return { skill, library: z.strictObject({ version: z.optional(z.literal(1)), skills: z.array(skill).max(1000) }) }
}

type LibraryEntry = z.infer<ReturnType<typeof librarySchemas>['skill']>
