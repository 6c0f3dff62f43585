/** What one row cannot see: whether each provider is complete, and whether the names that refer to providers lead somewhere. */

import { didYouMean } from '../../kit/did-you-mean.ts'
import { isObject } from '../../kit/json.ts'
import { type ConfigProblem, type ProviderKind, providerKinds } from '../config.ts'
import { providerSettings as rows } from '../find.ts'
import { leafOf, patternOf, type Setting } from '../setting.ts'
import { quote } from '../text/toml-quote.ts'
import { type Entries, type Entry, isStrings, providerNames } from './entries.ts'

const prefix = 'providers.models.'

/** `mentioned`: keys that stand somewhere but were wrong already; nothing more is said of those. */
export type Known = { readonly entries: Entries; readonly mentioned: ReadonlySet<string> }

export function kindOf(entries: Entries, name: string): ProviderKind | undefined {
  return providerKinds.find((kind) => kind === entries.get(`${prefix}${name}.kind`)?.value)
}

/** Missing keys, and keys that mean nothing for the kind. */
export function completeness(known: Known): readonly ConfigProblem[] {
  return providerNames(known.entries).flatMap((name) => ofProvider(known, name))
}

function ofProvider(known: Known, name: string): readonly ConfigProblem[] {
  const key = `${prefix}${name}`
  const own = [...known.entries].filter(([each]) => each.startsWith(`${key}.`))
  const kind = kindOf(known.entries, name)
  if (kind === undefined) return known.mentioned.has(`${key}.kind`) ? [] : [missing(key, 'kind', own[0]?.[1])]
  const strange = own.filter(([each]) => rowOf(each)?.kinds?.includes(kind) === false).map(([each, entry]) => outOfPlace(each, entry, kind))
  const lacking = rows.filter((row) => row.required?.includes(kind)).map((row) => leafOf(row.key))
  const absent = lacking.filter((leaf) => !known.entries.has(`${key}.${leaf}`) && !known.mentioned.has(`${key}.${leaf}`))
  return [...strange, ...absent.map((leaf) => missing(key, leaf, known.entries.get(`${key}.kind`)))]
}

function rowOf(key: string): Setting | undefined {
  return rows.find((row) => row.key === patternOf(key))
}

function missing(key: string, leaf: string, near: Entry | undefined): ConfigProblem {
  const row = rows.find((each) => each.key === `${prefix}*.${leaf}`)
  const allowed = leaf === 'kind' ? ` (one of ${providerKinds.map(quote).join(', ')})` : ''
  return problem(near, `${key}.${leaf}`, `is missing${allowed}; ${row?.about ?? ''}`)
}

function outOfPlace(key: string, entry: Entry, kind: ProviderKind): ConfigProblem {
  return problem(entry, key, `means nothing for kind = "${kind}", only for ${(rowOf(key)?.kinds ?? []).map(quote).join(', ')}; remove it`)
}

function problem(near: Entry | undefined, key: string, message: string): ConfigProblem {
  const { where = 'built in', line, column } = near?.origin ?? {}
  return { file: where, line, column, key, message }
}

/** The names a provider's own keys refer to. */
export function membersOf(entries: Entries, name: string): readonly { readonly key: string; readonly name: string }[] {
  const of = (leaf: string) => ({ key: `${prefix}${name}.${leaf}`, value: entries.get(`${prefix}${name}.${leaf}`)?.value })
  const [list, routes, fallBack] = [of('providers'), of('routes'), of('default')]
  const listed = isStrings(list.value) ? list.value.map((member) => ({ key: list.key, name: member })) : []
  const routed = isObject(routes.value) ? Object.values(routes.value).map((member) => ({ key: routes.key, name: String(member) })) : []
  return [...(typeof fallBack.value === 'string' ? [{ key: fallBack.key, name: fallBack.value }] : []), ...listed, ...routed]
}

/** default_provider, reliable.providers, router.routes and router.default name a provider there is; and no chain of them bites its tail. */
export function references({ entries, mentioned }: Known): readonly ConfigProblem[] {
  const names = new Set([...providerNames(entries), ...providerNames(mentioned)])
  const chosen = { key: 'default_provider', name: String(entries.get('default_provider')?.value) }
  const all = [chosen, ...providerNames(entries).flatMap((name) => membersOf(entries, name))]
  const unknown = all.filter(({ name }) => !names.has(name))
  return [...unknown.map(({ key, name }) => unknownProvider(entries, key, name, [...names])), ...cycles(entries)]
}

/** What is kept of a history must be less than what makes it too long. */
export function lengths({ entries, mentioned }: Known): readonly ConfigProblem[] {
  const [max, keep] = ['memory.history_max', 'memory.history_keep'].map((key) => ({ key, entry: entries.get(key) }))
  if (!max?.entry || !keep?.entry || mentioned.has(max.key) || mentioned.has(keep.key)) return []
  if (Number(keep.entry.value) < Number(max.entry.value)) return []
  const [blamed, other] = keep.entry.origin.source === 'default' ? [max, keep] : [keep, max]
  const must = blamed === keep ? 'less' : 'more'
  return [problem(blamed.entry, blamed.key, `${blamed.entry?.value} must be ${must} than ${other.key} (${other.entry?.value})`)]
}

function unknownProvider(entries: Entries, key: string, name: string, names: readonly string[]): ConfigProblem {
  const advice = didYouMean(name, names) || `; there are: ${names.join(', ')}. Add [providers.models.${name}] or choose one of these`
  return problem(entries.get(key), key, `there is no provider ${quote(name)}${advice}`)
}

/** Each circle once, told from the first of its members. */
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
