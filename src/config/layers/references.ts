/**
 * Checks what no single row can check: each provider is complete, every name of a provider refers to an existing one, and values fit
 * together.
 */

import { existsSync, statSync } from 'node:fs'
import { isObject } from '../../kit/json.ts'
import { didYouMean, folded } from '../../kit/text.ts'
import { databaseFiles } from '../../memory/database-file.ts'
import { realPlace } from '../../workspace/real-place.ts'
import type { ConfigProblem } from '../config.ts'
import { kinds, leafOf, providerPrefix as prefix, providerSetting, rowsOfKind } from '../table.ts'
import { quote } from '../text/toml.ts'
import { type ConfigEntry, type Entries, isStrings, providerNames } from './entries.ts'

/** `mentioned`: keys that already have a problem; no further problem is reported for them. */
export type CheckedEntries = { readonly entries: Entries; readonly mentioned: ReadonlySet<string> }

export function kindOf(entries: Entries, name: string): string | undefined {
  return kinds.find(({ kind }) => kind === entries.get(`${prefix}${name}.kind`)?.value)?.kind
}

/** Reports missing keys, and keys that have no meaning for the provider's kind. */
export function completeness(known: CheckedEntries): readonly ConfigProblem[] {
  return providerNames(known.entries).flatMap((name) => ofProvider(known, name))
}

function ofProvider(known: CheckedEntries, name: string): readonly ConfigProblem[] {
  const key = `${prefix}${name}`
  const own = [...known.entries].filter(([each]) => each.startsWith(`${key}.`))
  const kind = kindOf(known.entries, name)
  if (kind === undefined) return known.mentioned.has(`${key}.kind`) ? [] : [missing(key, 'kind', own[0]?.[1])]
  const rows = rowsOfKind(kind) ?? {}
  const strange = own.filter(([each]) => leafOf(each) !== 'kind' && !Object.hasOwn(rows, leafOf(each)))
  const lacking = Object.entries(rows).flatMap(([leaf, row]) => (row.required ? [leaf] : []))
  const absent = lacking.filter((leaf) => !known.entries.has(`${key}.${leaf}`) && !known.mentioned.has(`${key}.${leaf}`))
  return [
    ...strange.map(([each, entry]) => outOfPlace(each, entry, kind)),
    ...absent.map((leaf) => missing(key, leaf, known.entries.get(`${key}.kind`), kind)),
  ]
}

function missing(key: string, leaf: string, near: ConfigEntry | undefined, kind?: string): ConfigProblem {
  const allowed = leaf === 'kind' ? ` (one of ${kinds.map((each) => quote(each.kind)).join(', ')})` : ''
  return problem(near, `${key}.${leaf}`, `is missing${allowed}; ${providerSetting(`${key}.${leaf}`, kind)?.about ?? ''}`)
}

function outOfPlace(key: string, entry: ConfigEntry, kind: string): ConfigProblem {
  const others = kinds.filter(({ settings }) => Object.hasOwn(settings, leafOf(key))).map((each) => quote(each.kind))
  return problem(entry, key, `means nothing for kind = "${kind}", only for ${others.join(', ')}; remove it`)
}

function problem(near: ConfigEntry | undefined, key: string, message: string): ConfigProblem {
  const { where = 'built in', line, column } = near?.origin ?? {}
  return { file: where, line, column, key, message }
}

/** Returns the provider names in a provider's own keys; a single name comes before lists and tables, because it is the fallback. */
export function membersOf(entries: Entries, name: string): readonly { readonly key: string; readonly name: string }[] {
  // For a provider without a kind, check the keys of all kinds, so that wrong names are reported at once too.
  const rows = rowsOfKind(kindOf(entries, name))
  const found = (rows ? Object.entries(rows) : kinds.flatMap(({ settings }) => Object.entries(settings))).filter(
    ([, row]) => row.type === 'map' || ('form' in row && row.form === 'provider'),
  )
  const members = found.map(([leaf]) => ({ key: `${prefix}${name}.${leaf}`, value: entries.get(`${prefix}${name}.${leaf}`)?.value }))
  const single = ({ value }: { readonly value: unknown }) => (typeof value === 'string' ? 0 : 1)
  return members.toSorted((a, b) => single(a) - single(b)).flatMap(({ key, value }) => namesIn(value).map((each) => ({ key, name: each })))
}

function namesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return isStrings(value) ? value : isObject(value) ? Object.values(value).map(String) : []
}

/** Checks that default_provider, reliable.providers, router.routes and router.default name existing providers and form no cycle. */
export function references({ entries, mentioned }: CheckedEntries): readonly ConfigProblem[] {
  const names = new Set([...providerNames(entries), ...providerNames(mentioned)])
  const chosen = { key: 'default_provider', name: String(entries.get('default_provider')?.value) }
  const all = [chosen, ...providerNames(entries).flatMap((name) => membersOf(entries, name))]
  const unknown = all.filter(({ name }) => !names.has(name))
  return [...unknown.map(({ key, name }) => unknownProvider(entries, key, name, [...names])), ...cycles(entries)]
}

/** Checks that memory.history_keep is less than memory.history_max. */
export function lengths({ entries, mentioned }: CheckedEntries): readonly ConfigProblem[] {
  const [max, keep] = ['memory.history_max', 'memory.history_keep'].map((key) => ({ key, entry: entries.get(key) }))
  if (!max?.entry || !keep?.entry || mentioned.has(max.key) || mentioned.has(keep.key)) return []
  if (Number(keep.entry.value) < Number(max.entry.value)) return []
  const [blamed, other] = keep.entry.origin.source === 'default' ? [max, keep] : [keep, max]
  const must = blamed === keep ? 'less' : 'more'
  return [problem(blamed.entry, blamed.key, `${blamed.entry?.value} must be ${must} than ${other.key} (${other.entry?.value})`)]
}

/** Checks that each of the two records has a file of its own. */
export function recordPlaces({ entries, mentioned }: CheckedEntries): readonly ConfigProblem[] {
  const places = ['memory.path', 'receipts.path'].map((key) => ({ key, entry: entries.get(key), path: String(entries.get(key)?.value) }))
  const chosen = places.filter(({ entry }) => entry?.origin.source !== 'default')
  const [[memory, receipts], blamed] = [places, chosen.at(-1)]
  if (!memory || !receipts || !blamed || places.some(({ key }) => mentioned.has(key))) return []
  if (!isOneFile(realPlace(memory.path), realPlace(receipts.path))) return []
  const other = blamed === memory ? receipts : memory
  const why = `is a file of ${other.key} (${quote(other.path)}), and each would destroy the other; name another file`
  return [problem(blamed.entry, blamed.key, `${quote(blamed.path)} ${why}`)]
}

/** Compares what the names lead to; a file system may ignore case. SQLite keeps three more files beside the database. */
function isOneFile(database: string, log: string): boolean {
  const [one, two] = [database, log].map((path) => (existsSync(path) ? statSync(path) : undefined))
  return databaseFiles(database).map(folded).includes(folded(log)) || (one !== undefined && one.dev === two?.dev && one.ino === two.ino)
}

function unknownProvider(entries: Entries, key: string, name: string, names: readonly string[]): ConfigProblem {
  const advice = didYouMean(name, names) || `; there are: ${names.join(', ')}. Add [providers.models.${name}] or choose one of these`
  return problem(entries.get(key), key, `unknown provider ${quote(name)}${advice}`)
}

/** Reports each cycle once, at its first member. */
function cycles(entries: Entries): readonly ConfigProblem[] {
  const finished = new Set<string>()
  const found: ConfigProblem[] = []
  const follow = (name: string, trail: readonly string[]) => {
    const start = trail.indexOf(name)
    if (start !== -1) found.push(circle(entries, [...trail.slice(start), name]))
    if (start !== -1 || finished.has(name)) return
    for (const member of new Set(membersOf(entries, name).map((each) => each.name))) follow(member, [...trail, name])
    finished.add(name)
  }
  for (const name of providerNames(entries)) follow(name, [])
  return found
}

function circle(entries: Entries, trail: readonly string[]): ConfigProblem {
  const [first = '', second = ''] = trail
  const key = membersOf(entries, first).find((member) => member.name === second)?.key ?? ''
  return problem(entries.get(key), key, `these providers lead in a circle: ${trail.join(' → ')}; take one of them out`)
}
