/** Builds the layer of defaults: those of the table, the offline helper `local`, and those of each provider kind. */

import { defaultOf } from '../../kit/settings.ts'
import type { Origin } from '../config.ts'
import { providerPrefix, rowsOfKind } from '../table.ts'
import { check } from '../text/check.ts'
import { type ConfigEntry, type Entries, type Here, providerNames } from './entries.ts'
import { kindOf } from './references.ts'

const builtIn: Origin = { source: 'default', where: 'built in' }

/** Checks only the defaults that are paths, because they depend on the user. */
export function defaultEntries(where: Here): Entries {
  const entries = new Map<string, ConfigEntry>()
  for (const setting of where.table.settings) {
    if (setting.key.includes('*')) continue
    const value = setting.type === 'path' || setting.type === 'paths' ? check(setting, defaultOf(setting), where).value : defaultOf(setting)
    if (value !== undefined) entries.set(setting.key, { value, origin: builtIn })
  }
  return entries
}

/** Adds the provider `stub` when it is the default provider and the user has defined none of that name. */
export function withStub(entries: Entries): Entries {
  if (entries.get('default_provider')?.value !== 'stub' || providerNames(entries).includes('stub')) return entries
  return new Map([...entries, ['providers.models.stub.kind', { value: 'stub', origin: builtIn }] as const])
}

/** Adds `local`, unless the user has defined it, and the default values of each provider's kind. */
export function withProviderDefaults(entries: Entries): Entries {
  const all = new Map<string, ConfigEntry>()
  const names = providerNames(entries)
  const given = names.includes('local') ? entries : new Map([...entries, ['providers.models.local.kind', localKind] as const])
  for (const name of names.includes('local') ? names : [...names, 'local']) fill(all, given, name)
  for (const [key, entry] of given) all.set(key, entry)
  return all
}

const localKind: ConfigEntry = { value: 'mock', origin: builtIn }

/** Adds the defaults of one provider's kind. */
function fill(all: Map<string, ConfigEntry>, entries: Entries, name: string): void {
  const kind = kindOf(entries, name)
  for (const [leaf, row] of Object.entries(rowsOfKind(kind) ?? {})) {
    const value = defaultOf(row)
    if (value !== undefined) all.set(`${providerPrefix}${name}.${leaf}`, { value, origin: builtIn })
  }
}
