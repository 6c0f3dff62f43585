/** A TOML file as a layer. Everything in it is either understood or a problem. */

import { dirname } from 'node:path'
import { isObject } from '../../kit/json.ts'
import type { ConfigProblem, Origin, Source } from '../config.ts'
import { settingOf } from '../find.ts'
import { forms, patternOf, type Setting } from '../setting.ts'
import { check } from '../text/check.ts'
import type { Surroundings } from '../text/expand.ts'
import { readToml, type TomlDocument } from '../text/toml.ts'
import type { Entry, Layer } from './entries.ts'
import { isSection, unknownKey } from './unknown.ts'

export type FileInput = { readonly file: string; readonly text: string; readonly source: Source; readonly around: Surroundings }

/** `broken`: the syntax was wrong somewhere, so what is missing may only be unreadable. */
export type FileLayer = Layer & { readonly broken: boolean }

type Walk = FileInput & {
  readonly toml: TomlDocument
  readonly entries: Map<string, Entry>
  readonly problems: ConfigProblem[]
}

export function fileLayer(input: FileInput): FileLayer {
  const toml = readToml(input.text)
  const problems = toml.problems.map((problem) => ({ file: input.file, key: '', ...problem }))
  const walk = { ...input, toml, entries: new Map<string, Entry>(), problems }
  visitTable(walk, '', toml.data)
  return { entries: walk.entries, problems, notices: [], broken: toml.problems.length > 0 }
}

function visitTable(walk: Walk, prefix: string, table: { readonly [key: string]: unknown }): void {
  for (const [name, raw] of Object.entries(table)) visit(walk, prefix, name, raw)
}

function visit(walk: Walk, prefix: string, name: string, raw: unknown): void {
  const key = prefix + name
  const setting = name.includes('.') ? undefined : settingOf(key)
  if (setting !== undefined) visitValue(walk, setting, key, raw)
  else if (!isKnownSection(prefix, name)) blame(walk, key, unknownKey(prefix, name, raw))
  else if (!isObject(raw) || raw instanceof Date) blame(walk, key, noSection(key, raw))
  // A provider without any key must still be missed: it lacks its kind.
  else if (prefix === 'providers.models.' && Object.keys(raw).length === 0) blame(walk, key, 'is empty; give it at least a kind')
  else visitTable(walk, `${key}.`, raw)
}

function noSection(key: string, raw: unknown): string {
  return `must be a section, written [${key}]${Array.isArray(raw) ? ' once and with single brackets' : ''}`
}

function isKnownSection(prefix: string, name: string): boolean {
  if (prefix === 'providers.models.') return new RegExp(forms.provider.pattern).test(name)
  return !name.includes('.') && isSection(patternOf(prefix + name))
}

function visitValue(walk: Walk, setting: Setting, key: string, raw: unknown): void {
  const checked = check(setting, raw, { ...walk.around, base: dirname(walk.file), typed: false })
  const origin = originIn(walk, key)
  for (const message of checked.wrong) walk.problems.push({ file: walk.file, line: origin.line, column: origin.column, key, message })
  if (checked.value !== undefined) walk.entries.set(key, { value: checked.value, origin })
}

/** Line and column are looked up when somebody asks: on the way to an answer nobody does. */
function originIn({ source, file, toml }: Walk, key: string): Origin {
  const at = () => toml.place(key)?.value ?? toml.place(key)
  return {
    source,
    where: file,
    get line() {
      return at()?.line
    },
    get column() {
      return at()?.column
    },
  }
}

function blame(walk: Walk, key: string, message: string): void {
  const { line, column } = walk.toml.place(key) ?? {}
  walk.problems.push({ file: walk.file, line, column, key, message })
}
