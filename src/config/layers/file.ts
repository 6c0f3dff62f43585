/** Reads a TOML file as a layer; every key in it becomes an entry or a problem. */

import { dirname } from 'node:path'
import { isObject } from '../../kit/json.ts'
import { forms } from '../../kit/settings.ts'
import type { ConfigProblem, Origin, Source } from '../config.ts'
import { patternOf, providerPrefix, type Setting, settingOf } from '../table.ts'
import { check } from '../text/check.ts'
import { readToml, type TomlDocument } from '../text/toml.ts'
import type { Around, Entry, Layer } from './entries.ts'
import { isSection, unknownKey } from './unknown.ts'

export type FileInput = { readonly file: string; readonly text: string; readonly source: Source; readonly around: Around }

/** `broken`: the file has a syntax error, so a missing key may only be unreadable. */
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
  // The kind named in a provider's table selects the rows for its keys.
  const kind = prefix.startsWith(providerPrefix) && typeof table.kind === 'string' ? table.kind : undefined
  for (const [name, raw] of Object.entries(table)) visit(walk, { prefix, name, kind }, raw)
}

type At = { readonly prefix: string; readonly name: string; readonly kind: string | undefined }

function visit(walk: Walk, { prefix, name, kind }: At, raw: unknown): void {
  const key = prefix + name
  const setting = name.includes('.') ? undefined : settingOf(walk.around.table, key, kind)
  if (setting !== undefined) visitValue(walk, setting, key, raw)
  else if (!isKnownSection(walk, prefix, name)) blame(walk, key, unknownKey(walk.around.table, { prefix, name, kind }, raw))
  else if (!isObject(raw) || raw instanceof Date) blame(walk, key, noSection(key, raw))
  // Report a provider without any key here: it has no `kind`, and no entry would reveal it.
  else if (prefix === providerPrefix && Object.keys(raw).length === 0) blame(walk, key, 'is empty; give it at least a kind')
  else visitTable(walk, `${key}.`, raw)
}

function noSection(key: string, raw: unknown): string {
  return `must be a section, written [${key}]${Array.isArray(raw) ? ' once and with single brackets' : ''}`
}

function isKnownSection({ around }: Walk, prefix: string, name: string): boolean {
  if (prefix === providerPrefix) return new RegExp(forms.provider.pattern).test(name)
  return !name.includes('.') && isSection(around.table, patternOf(prefix + name))
}

function visitValue(walk: Walk, setting: Setting, key: string, raw: unknown): void {
  const checked = check(setting, raw, { ...walk.around, base: dirname(walk.file), typed: false })
  const origin = originIn(walk, key)
  for (const message of checked.wrong) walk.problems.push({ file: walk.file, line: origin.line, column: origin.column, key, message })
  if (checked.value !== undefined) walk.entries.set(key, { value: checked.value, origin })
}

/** Computes line and column only when they are read: a normal turn never reads them. */
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
