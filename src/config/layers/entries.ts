/** Defines a layer: the entries that one source (a file, the environment, the flags) sets, by dotted key, with their origins. */

import type { ConfigProblem, Origin } from '../config.ts'
import { providerPrefix, type Setting, type Table } from '../table.ts'
import { type ConfigValue, check, type ExpandContext, type Where } from '../text/check.ts'

/** The context for reading a layer: the table of all keys, and the values of `~` and `$NAME`. */
export type LayerContext = ExpandContext & { readonly table: Table }

/** The context for values that a person typed. */
export type Here = Where & LayerContext

export type ConfigEntry = { readonly value: ConfigValue; readonly origin: Origin }

export type Entries = ReadonlyMap<string, ConfigEntry>

export type Layer = { readonly entries: Entries; readonly problems: readonly ConfigProblem[]; readonly notices: readonly string[] }

export const programNames = ['braidclaw.config.ts', '.plaited/config.ts'] as const

export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** Returns the names of the providers that occur in these keys. */
export function providerNames(keys: Entries | ReadonlySet<string>): readonly string[] {
  const names = new Set<string>()
  for (const key of keys.keys()) {
    const end = key.startsWith(providerPrefix) ? key.indexOf('.', providerPrefix.length) : -1
    if (end > providerPrefix.length) names.add(key.slice(providerPrefix.length, end))
  }
  return [...names]
}

export type Draft = { readonly entries: Map<string, ConfigEntry>; readonly problems: ConfigProblem[]; readonly notices: string[] }

export function draftLayer(): Draft {
  return { entries: new Map(), problems: [], notices: [] }
}

/** Checks one value from a flag or a variable, and adds either the value or its problems to the draft. */
export function put(
  { entries, problems }: Draft,
  { setting, raw, where, origin }: { readonly setting: Setting; readonly raw: unknown; readonly where: Where; readonly origin: Origin },
): void {
  const checked = check(setting, raw, where)
  problems.push(...checked.wrong.map((message) => ({ file: origin.where, line: origin.line, key: setting.key, message })))
  if (checked.value !== undefined) entries.set(setting.key, { value: checked.value, origin })
}
