/**
 * Writes the text of a config file: the annotated one of `init`, and providers added to an existing one, where every byte of the user is kept.
 * All functions are pure.
 */

import { isObject } from '../kit/json.ts'
import { defaultOf, type Row, type Rows } from '../kit/settings.ts'
import type { Proposal } from './known-providers.ts'
import { chooseOffline, isOfflineDefault, replaceOfflineDefault } from './offline-default.ts'
import { type ChannelRows, sections, topRows } from './table.ts'
import { setInToml } from './text/edit-toml.ts'
import { readToml, tomlValue } from './text/toml.ts'

type DefaultChoice = { readonly name: string; readonly model: string }

export type Extension = {
  readonly text: string
  /** The proposals whose tables were added. */
  readonly added: readonly Proposal[]
  /** The name of the provider that became the default. */
  readonly chosen?: string
  /** The proposals whose name already belongs to a different table. */
  readonly clashing: readonly Proposal[]
}

export type ExtensionRequest = {
  /** In order of preference. */
  readonly proposals: readonly Proposal[]
  /** A person chose this provider just now: it replaces any earlier default. */
  readonly choice?: DefaultChoice
}

/**
 * Adds the missing tables to `text`, which must be valid. Without a choice the first proposal becomes the default only if `init`, and not
 * the user, chose the offline helper.
 */
export function extendConfig(text: string, { proposals, choice }: ExtensionRequest): Extension {
  const tables = tablesIn(text)
  const missing = proposals.filter((proposal) => nameIn(tables, proposal) === undefined)
  const clashing = missing.filter(({ name }) => Object.hasOwn(tables, name))
  const added = missing.filter((proposal) => !clashing.includes(proposal))
  const [first] = proposals.filter((proposal) => !clashing.includes(proposal))
  const chosen = choice ?? (first && isOfflineDefault(text) ? choiceOf(tables, first) : undefined)
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const whole = withTables(text, added, end)
  return { text: chosen ? withDefault(whole, chosen, end) : whole, added, clashing, chosen: chosen?.name }
}

/** Returns the name of the table with this server and key, or else a free name. */
export function nameFor(text: string, proposal: Proposal): string {
  const tables = tablesIn(text)
  const there = nameIn(tables, proposal)
  if (there !== undefined) return there
  for (let n = 1; ; n++) {
    const name = n === 1 ? proposal.name : `${proposal.name}${n}`
    if (!Object.hasOwn(tables, name)) return name
  }
}

type Tables = { readonly [name: string]: unknown }

function tablesIn(text: string): Tables {
  const { providers } = readToml(text).data
  return isObject(providers) && isObject(providers.models) ? providers.models : {}
}

/** Finds the table with this server and key, whatever its name is. */
function nameIn(tables: Tables, proposal: Proposal): string | undefined {
  const { name, kind, baseUrl, apiKeyEnv } = proposal
  return Object.keys(tables).find((other) => {
    const table = tables[other]
    if (!isObject(table)) return false
    const same = table.kind === kind && table.base_url === baseUrl
    return keyOf(table) === apiKeyEnv && (other === name || same)
  })
}

/** Two kinds read their vendor's variable by default. */
function keyOf({ kind, api_key_env: named }: { readonly [key: string]: unknown }): unknown {
  return named ?? (kind === 'openai' || kind === 'anthropic' ? `${kind.toUpperCase()}_API_KEY` : undefined)
}

function choiceOf(tables: Tables, proposal: Proposal): DefaultChoice {
  const name = nameIn(tables, proposal) ?? proposal.name
  const table = tables[name]
  return { name, model: isObject(table) && typeof table.model === 'string' ? table.model : proposal.model }
}

function withTables(text: string, added: readonly Proposal[], end: string): string {
  if (added.length === 0) return text
  const gap = text === '' ? '' : text.endsWith('\n') ? end : end + end
  return text + gap + added.map((proposal) => providerTable(proposal).join(end)).join(end + end) + end
}

export function providerTable({ name, kind, model, baseUrl, apiKeyEnv, because }: Proposal): string[] {
  return [
    ...(because === '' ? [] : [`# Added because ${because} is set.`]),
    `[providers.models.${name}]`,
    `kind = ${literal(kind)}`,
    `model = ${literal(model)}`,
    ...(baseUrl === undefined ? [] : [`base_url = ${literal(baseUrl)}`]),
    ...(apiKeyEnv === undefined ? [] : [`api_key_env = ${literal(apiKeyEnv)}`]),
  ]
}

/** Writes `$` as `$$`, so that it is not expanded. */
function literal(text: string): string {
  return tomlValue(text.replaceAll('$', '$$$$'))
}

function withDefault(text: string, { name, model }: DefaultChoice, end: string): string {
  const [provider, asked] = [literal(name), literal(model)]
  if (isOfflineDefault(text)) return name === 'local' ? chooseOffline(text, end) : replaceOfflineDefault(text, { provider, model: asked })
  return setInToml(setInToml(text, 'default_model', asked), 'default_provider', provider)
}

type NewFile = {
  readonly channels: readonly ChannelRows[]
  /** The first becomes the default provider. */
  readonly proposals: readonly Proposal[]
  readonly workspace?: string
  /** True: the file sets the workspace and the limits of the first specification, which differ from what holds without them. */
  readonly seedDefaults?: boolean
}

/** Returns the annotated config file of `init`, complete and valid; each commented-out line shows its default and stays valid when it is uncommented. */
export function defaultConfigToml({ channels, proposals, workspace, seedDefaults }: NewFile): string {
  const [first] = proposals
  const { security, limits, ...others } = sections
  const top = linesOf(topRows, {
    workspace_dir: workspace?.replaceAll('$', '$$$$') ?? (seedDefaults ? topRows.workspace_dir.example : undefined),
    default_provider: first?.name ?? 'local',
    default_model: first?.model ?? 'mock',
  })
  const providers = [
    ['# Answers without any network; it is not a language model.', '[providers.models.local]', 'kind = "mock"', 'model = "mock"'],
    ...(proposals.length === 0 ? [exampleProvider] : proposals.map(providerTable)),
  ]
  const all = [
    ['# BraidClaw. Every key, its meaning and its default: docs/config.md; check this file with: braidclaw config validate', ...top],
    section(['security', security]),
    section(['limits', limits], seedDefaults ? seedValues(limits) : {}),
    ...providers,
    ...channels.map(({ name, settings }) => section([`channels.${name}`, settings])),
    ...Object.entries(others).map((each) => section(each)),
  ]
  return `${all.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

const exampleProvider = [
  '# A real model, here any server that speaks the chat completions protocol. The key is read from the variable named.',
  '[providers.models.openai_compatible]',
  'kind = "openai-compatible"',
  'base_url = "http://localhost:1234/v1"',
  'model = "local-model"',
  'api_key_env = "OPENAI_API_KEY"',
]

type FileValues = { readonly [key: string]: string | number | undefined }

function section([name, rows]: readonly [name: string, rows: Rows], values?: FileValues): string[] {
  return [`[${name}]`, ...linesOf(rows, values)]
}

/** Returns the numbers of the first specification, by their keys. */
export function seedValues(rows: Rows): FileValues {
  return Object.fromEntries(Object.entries(rows).flatMap(([key, row]) => ('seed' in row ? [[key, row.seed]] : [])))
}

/** Writes every key of a table: keys with a value and keys that a new file sets; the others are commented out. */
function linesOf(rows: Rows, values: FileValues = {}): string[] {
  return Object.entries(rows).flatMap(([key, row]) => line(key, row, values[key]))
}

function line(key: string, row: Row, value: FileValues[string]): string[] {
  const usual = defaultOf(row)
  if (value !== undefined || row.init === 'written') return [`# ${row.about}`, `${key} = ${tomlValue(value ?? usual)}`]
  if (usual !== undefined) return [`# ${row.about}`, `# ${key} = ${tomlValue(usual)}`]
  const absent = `Not set: ${row.absent ?? row.computed ?? 'off'}.`
  if (row.example === undefined) return [`# ${key}: ${row.about} ${absent}`]
  return [`# ${row.about} ${absent}`, `# ${key} = ${tomlValue(row.example)}`]
}
