/** Merges the settings of a project's own file over the user's: most may only be made stricter there. */

import type { ConfigProblem } from '../config.ts'
import { providerPrefix, type Setting, serverPrefix, settingOf, type Table } from '../table.ts'
import { quote, shown } from '../text/toml.ts'
import { type ConfigEntry, type Entries, isStrings, type Layer } from './entries.ts'

type Weighed = { readonly entry: ConfigEntry } | { readonly why: string }

/** Merges the project's entries over the user's. Refused entries become problems, because ignoring them silently would mislead the user. */
export function overlayProject(table: Table, base: Entries, project: Entries): Layer {
  const merged = new Map(base)
  const problems: ConfigProblem[] = []
  for (const [key, entry] of project) {
    const weighed = weigh(key.startsWith(providerPrefix) ? undefined : settingOf(table, key), base.get(key), entry)
    if ('entry' in weighed) merged.set(key, weighed.entry)
    else problems.push({ file: entry.origin.where, line: entry.origin.line, column: entry.origin.column, key, message: weighed.why })
  }
  const twice = [...project].filter(([key]) => key.startsWith(serverPrefix) && base.has(key))
  return {
    entries: merged,
    problems,
    notices: twice.map(([key, { origin }]) => `${key} of ${origin.where} counts, not the one of your own file`),
  }
}

/** Refuses every key whose row does not allow it: a row without a `project` field permits nothing. */
function weigh(setting: Setting | undefined, base: ConfigEntry | undefined, entry: ConfigEntry): Weighed {
  switch (setting?.project) {
    case 'free':
      return { entry }
    case 'stricter':
      return stricter(setting, base, entry)
    case 'union':
      return { entry: { ...entry, value: [...new Set([...stringsIn(base), ...stringsIn(entry)])] } }
    default:
      return { why: 'a project may not set this; move it to your own config file (it says where keys, records and permissions go)' }
  }
}

function stringsIn(entry: ConfigEntry | undefined): readonly string[] {
  return isStrings(entry?.value) ? entry.value : []
}

/** Accepts a value that permits no more than the user's: a lower level, a smaller limit, fewer tools. Otherwise tells the project why. */
function stricter(setting: Setting, base: ConfigEntry | undefined, entry: ConfigEntry): Weighed {
  if (setting.type === 'choice')
    return atMost(setting.values.indexOf(String(entry.value)), setting.values.indexOf(String(base?.value)), { base, entry })
  if (setting.type === 'boolean') return entry.value === true || base?.value === false ? { entry } : tooMuch(base)
  if (typeof entry.value === 'number')
    return atMost(entry.value, typeof base?.value === 'number' ? base.value : Number.POSITIVE_INFINITY, { base, entry })
  const mine = isStrings(base?.value) ? base.value : undefined
  const added = mine === undefined ? [] : stringsIn(entry).filter((word) => !mine.includes(word))
  return added.length === 0
    ? { entry }
    : { why: `a project may only leave out what you allow, and this adds ${added.map(quote).join(', ')}` }
}

function atMost(wished: number, allowed: number, { base, entry }: { base: ConfigEntry | undefined; entry: ConfigEntry }): Weighed {
  return wished <= allowed ? { entry } : tooMuch(base)
}

function tooMuch(base: ConfigEntry | undefined): Weighed {
  return { why: `a project may only make this stricter than your own setting (${shown(base?.value)}); change your own config file instead` }
}
