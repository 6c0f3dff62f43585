/** Adds providers to the text of an existing config file and keeps every byte the user wrote; all functions are pure. */

import { isObject } from '../kit/json.ts'
import type { Proposal } from './known-providers.ts'
import { chooseOffline, isOfflineDefault, replaceOfflineDefault } from './offline-default.ts'
import { toml } from './output/show.ts'
import { locate } from './text/locate.ts'
import { readToml } from './text/toml.ts'

type Choice = { readonly name: string; readonly model: string }

export type Extension = {
  readonly text: string
  /** The proposals whose tables were added. */
  readonly added: readonly Proposal[]
  /** The name of the provider that became the default. */
  readonly chosen?: string
  /** The proposals whose name already belongs to a different table. */
  readonly clashing: readonly Proposal[]
}

export type Wanted = {
  /** In order of preference. */
  readonly proposals: readonly Proposal[]
  /** A person chose this provider just now: it replaces any earlier default. */
  readonly choice?: Choice
}

/**
 * Adds the missing tables to `text`, which must be valid. Without a choice the first proposal becomes the default only if `init`, and not
 * the user, chose the offline helper.
 */
export function extendConfig(text: string, { proposals, choice }: Wanted): Extension {
  const tables = tablesIn(text)
  const missing = proposals.filter((proposal) => nameIn(tables, proposal) === undefined)
  const clashing = missing.filter(({ name }) => Object.hasOwn(tables, name))
  const added = missing.filter((proposal) => !clashing.includes(proposal))
  const [first] = proposals.filter((proposal) => !clashing.includes(proposal))
  const chosen = choice ?? (first && isOfflineDefault(text) ? choiceOf(tables, first) : undefined)
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const whole = withTables(text, added, end)
  return { text: chosen ? withDefault(whole, chosen, end) : whole, added, clashing, ...(chosen ? { chosen: chosen.name } : {}) }
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

function choiceOf(tables: Tables, proposal: Proposal): Choice {
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
export function literal(text: string): string {
  return toml(text.replaceAll('$', '$$$$'))
}

function withDefault(text: string, { name, model }: Choice, end: string): string {
  const [provider, asked] = [literal(name), literal(model)]
  if (isOfflineDefault(text)) return name === 'local' ? chooseOffline(text, end) : replaceOfflineDefault(text, { provider, model: asked })
  return withTop(withTop(text, `default_model = ${asked}`, end), `default_provider = ${provider}`, end)
}

/** Replaces the value of a top-level assignment, or adds the assignment as the first line. */
function withTop(text: string, assignment: string, end: string): string {
  const [key = '', value = ''] = assignment.split(/ = (.*)/s)
  const at = locate(text).get(key)?.value
  const mark = text.startsWith('\ufeff') ? 1 : 0
  if (at === undefined) return `${text.slice(0, mark)}${assignment}${end}${text.slice(mark)}`
  const before = text.split('\n').slice(0, at.line - 1)
  const start = before.reduce((sum, line) => sum + line.length + 1, 0) + at.column - 1
  const old = /^("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\]|\\.)*"|'[^']*')/.exec(text.slice(start))?.[0] ?? ''
  return text.slice(0, start) + value + text.slice(start + old.length)
}
