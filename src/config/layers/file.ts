/** Reads files as layers: a TOML file, where every key becomes an entry or a problem, and agents.json. */

import { dirname, join, normalize, relative } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { forms } from '../../kit/settings.ts'
import { didYouMean, nearest } from '../../kit/text.ts'
import type { AgentConfig, ConfigProblem, ConfigSource, Origin } from '../config.ts'
import { homePaths } from '../paths.ts'
import { leafOf, patternOf, providerPrefix, rowsOfKind, type Setting, sectionOf, settingOf, type Table } from '../table.ts'
import { check } from '../text/check.ts'
import type { FileRead } from '../text/read-toml-file.ts'
import { quote, readToml, type TomlDocument } from '../text/toml.ts'
import { type ConfigEntry, draftLayer, type Entries, type Here, type Layer, type LayerContext, put } from './entries.ts'

type FileInput = { readonly file: string; readonly text: string; readonly source: ConfigSource; readonly around: LayerContext }

/** `broken`: the file has a syntax error, so a missing key may only be unreadable. */
export type FileLayer = Layer & { readonly broken: boolean }

type LayerWalk = FileInput & { readonly toml: TomlDocument; readonly entries: Map<string, ConfigEntry>; readonly problems: ConfigProblem[] }

export function fileLayer(input: FileInput): FileLayer {
  const toml = readToml(input.text)
  const problems = toml.problems.map((problem) => ({ file: input.file, key: '', ...problem }))
  const walk = { ...input, toml, entries: new Map<string, ConfigEntry>(), problems }
  visitTable(walk, '', toml.data)
  return { entries: walk.entries, problems, notices: [], broken: toml.problems.length > 0 }
}

function visitTable(walk: LayerWalk, prefix: string, table: { readonly [key: string]: unknown }): void {
  // The kind named in a provider's table selects the rows for its keys.
  const kind = prefix.startsWith(providerPrefix) && typeof table.kind === 'string' ? table.kind : undefined
  for (const [name, raw] of Object.entries(table)) visit(walk, { prefix, name, kind }, raw)
}

type At = { readonly prefix: string; readonly name: string; readonly kind: string | undefined }

function visit(walk: LayerWalk, { prefix, name, kind }: At, raw: unknown): void {
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

function isKnownSection({ around }: LayerWalk, prefix: string, name: string): boolean {
  if (prefix === providerPrefix) return new RegExp(forms.provider.pattern).test(name)
  return !name.includes('.') && isSection(around.table, patternOf(prefix + name))
}

function visitValue(walk: LayerWalk, setting: Setting, key: string, raw: unknown): void {
  const checked = check(setting, raw, { ...walk.around, base: dirname(walk.file), typed: false })
  const origin = originIn(walk, key)
  for (const message of checked.wrong) walk.problems.push({ file: walk.file, line: origin.line, column: origin.column, key, message })
  if (checked.value !== undefined) walk.entries.set(key, { value: checked.value, origin })
}

/** Computes line and column only when they are read: a normal turn never reads them. */
function originIn({ source, file, toml }: LayerWalk, key: string): Origin {
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

function blame(walk: LayerWalk, key: string, message: string): void {
  const { line, column } = walk.toml.place(key) ?? {}
  walk.problems.push({ file: walk.file, line, column, key, message })
}

/** Matches the names of keys that would hold a secret. */
export const secret = /^(api_?)?key$|^api_?(token|secret)$|^(auth_?)?token$|^secret$|^password$|^authorization$|^bearer$/

/** Returns whether some key lies below this pattern (`channels.cli`). */
function isSection({ settings }: Table, pattern: string): boolean {
  return settings.some((setting) => setting.key.startsWith(`${pattern}.`))
}

type Unknown = { readonly prefix: string; readonly name: string; readonly kind?: string | undefined }

/**
 * Builds the message for an unknown key: the nearest spelling, the right section, or why the file must not contain secrets; it never shows
 * the value. `prefix` ends in a dot or is empty; `kind` is the kind of the enclosing provider.
 */
function unknownKey(table: Table, { prefix, name, kind }: Unknown, raw: unknown): string {
  if (prefix === providerPrefix) return `${quote(name)} cannot be the name of a provider; use letters, digits, "-" and "_"`
  if (secret.test(name.replaceAll('-', '_').toLowerCase())) return literalSecret(raw)
  const all = childrenOf(table, patternOf(prefix))
  const own = rowsOfKind(kind)
  const siblings = own ? ['kind', ...Object.keys(own)] : all
  const near = nearest(name, siblings) ?? nearest(name, all)
  if (near !== undefined) return `unknown key; did you mean "${near}"?`
  return (
    otherSection(table, name) ??
    `unknown key; ${prefix === '' ? 'at the top of the file' : `in [${prefix.slice(0, -1)}]`} there can be: ${siblings.join(', ')}`
  )
}

function literalSecret(raw: unknown): string {
  const variable = typeof raw === 'string' ? /^\$\{?([A-Z_][A-Z0-9_]*)\}?$/.exec(raw)?.[1] : undefined
  const name = variable ?? 'OPENAI_API_KEY'
  const doing =
    variable === undefined
      ? `put the secret into an environment variable and write its name: api_key_env = "${name}"`
      : `write api_key_env = "${name}"`
  return `secrets do not belong in this file; ${doing}`
}

/** Returns a message when the key exists, but in another section. */
function otherSection({ settings }: Table, name: string): string | undefined {
  const leaf = nearest(
    name,
    settings.map((setting) => leafOf(setting.key)),
  )
  const found = settings.find((setting) => leafOf(setting.key) === leaf)
  if (leaf === undefined || found === undefined) return undefined
  const section = sectionOf(found.key).replace('*', 'NAME')
  const place = section === '' ? 'the top of the file, above the first [section]' : `[${section}]`
  return `unknown key here${leaf === name ? '' : didYouMean(name, [leaf])}${leaf === name ? ';' : ''} "${leaf}" belongs to ${place}`
}

function childrenOf({ settings }: Table, prefix: string): readonly string[] {
  const below = settings.filter((setting) => setting.key.startsWith(prefix)).map((setting) => setting.key.slice(prefix.length))
  return [...new Set(below.map((rest) => rest.split('.')[0] ?? rest))]
}

export type Agents = {
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly problems: readonly ConfigProblem[]
  /** The file that was read. */
  readonly file?: string
}

/** Reads agents.json, `{ id: { soul, model } }`; the model of the selected agent overrides the environment. */
export function readAgents(home: string, readFile: (path: string) => FileRead): Agents {
  for (const file of homePaths(home).agentsFiles) {
    const read = readFile(file)
    if (read.state === 'unusable')
      return { file, agents: {}, problems: [{ file, line: read.line, key: '', message: `this file ${read.why}` }] }
    if (read.state === 'text') return { file, ...parse(file, read.text, home) }
  }
  return { agents: {}, problems: [] }
}

/** Returns a layer with the model of the agent that `entries` select. */
export function agentLayer({ agents, file = '' }: Agents, entries: Entries, where: Here): Layer {
  const draft = draftLayer()
  const id = String(entries.get('default_agent')?.value ?? 'default')
  const model = Object.hasOwn(agents, id) ? agents[id]?.model : undefined
  const setting = settingOf(where.table, 'default_model')
  if (model !== undefined && setting) put(draft, { setting, raw: model, where, origin: { source: 'agent', where: file } })
  return draft
}

function parse(file: string, text: string, home: string): Pick<Agents, 'agents' | 'problems'> {
  const wrong = (key: string, message: string) => ({ file, key, message })
  const data = parseJson(text)
  if (!isObject(data))
    return { agents: {}, problems: [wrong('', `must hold JSON such as {"coder": {"soul": "souls/coder.md", "model": null}}`)] }
  const agents: { [id: string]: AgentConfig } = {}
  const problems: ConfigProblem[] = []
  for (const [id, raw] of Object.entries(data)) {
    if (!new RegExp(forms.agent.pattern).test(id)) problems.push(wrong(id, `${quote(id)} must be ${forms.agent.says}`))
    else if (!isObject(raw)) problems.push(wrong(id, 'must be an object with "soul" and "model"'))
    else {
      const { agent, whys } = one(raw, home)
      agents[id] = agent
      problems.push(...whys.map(([key, why]) => wrong(`${id}.${key}`, why)))
    }
  }
  return { agents, problems }
}

/** `null` means the same as an absent key. */
function one(raw: { readonly [key: string]: unknown }, home: string) {
  const whys: (readonly [key: string, why: string])[] = []
  const { soul = null, model = null, ...rest } = raw
  for (const key of Object.keys(rest)) whys.push([key, `unknown key${didYouMean(key, ['soul', 'model']) || '; there can be: soul, model'}`])
  for (const [key, value] of Object.entries({ soul, model }))
    if (value !== null && (typeof value !== 'string' || value === '')) whys.push([key, 'must be text or null'])
  const path = typeof soul === 'string' && soul !== '' ? inside(home, soul) : undefined
  if (typeof soul === 'string' && soul !== '' && path === undefined)
    whys.push(['soul', `${quote(soul)} leads out of ${home}; write a path relative to it`])
  const agent: AgentConfig = { ...(path ? { soul: path } : {}), ...(typeof model === 'string' && model !== '' ? { model } : {}) }
  return { agent, whys }
}

function inside(home: string, path: string): string | undefined {
  const full = normalize(join(home, path))
  const way = relative(home, full)
  return path.startsWith('/') || path.includes('\0') || way === '' || way.split('/')[0] === '..' ? undefined : full
}
