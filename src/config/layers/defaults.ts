/** What holds when nothing is said: the table's defaults, the offline helper `local`, and each provider's own defaults. */

import type { Origin } from '../config.ts'
import { leafOf, type Setting } from '../setting.ts'
import { settings } from '../settings.ts'
import { check, type Where } from '../text/check.ts'
import { type Entries, type Entry, providerNames } from './entries.ts'
import { kindOf } from './references.ts'

const builtIn: Origin = { source: 'default', where: 'built in' }

/** `workspace`: the folder to use without any config file. */
export function defaultEntries(where: Where, workspace: string | undefined): Entries {
  const entries = new Map<string, Entry>()
  for (const setting of settings) {
    const value = setting.key.includes('*') ? undefined : check(setting, defaultOf(setting), where).value
    if (value !== undefined) entries.set(setting.key, { value, origin: builtIn })
  }
  if (workspace !== undefined) entries.set('workspace_dir', { value: workspace, origin: { source: 'default', where: 'current folder' } })
  return entries
}

/** `local`, unless the user has defined another, and what each provider's kind lacks. */
export function withProviderDefaults(entries: Entries): Entries {
  const named = entries.has('providers.models.local.kind') || providerNames(entries).includes('local')
  const local: Entries = new Map(named ? [] : [['providers.models.local.kind', { value: 'mock', origin: builtIn }]])
  const all = new Map([...entries, ...local])
  return new Map([...providerNames(all).flatMap((name) => ofProvider(all, name)), ...all])
}

function ofProvider(entries: Entries, name: string): readonly [string, Entry][] {
  const kind = kindOf(entries, name)
  return settings.flatMap((setting): readonly [string, Entry][] => {
    if (kind === undefined || !setting.key.startsWith('providers.models.') || !setting.kinds?.includes(kind)) return []
    const value = (setting.type === 'text' ? setting.byKind?.[kind] : undefined) ?? defaultOf(setting)
    return value === undefined ? [] : [[`providers.models.${name}.${leafOf(setting.key)}`, { value, origin: builtIn }]]
  })
}

export function defaultOf(setting: Setting): string | number | boolean | readonly string[] | readonly number[] | undefined {
  return 'default' in setting ? setting.default : undefined
}
