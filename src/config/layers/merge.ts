/** Layers into one: the stronger wins, except that a project's file may only tighten what guards the user. */

import type { ConfigProblem } from '../config.ts'
import { settingOf } from '../find.ts'
import { patternOf, type Setting } from '../setting.ts'
import { quote, shown } from '../text/toml-quote.ts'
import { type Entries, type Entry, isStrings } from './entries.ts'

/** Later layers win. */
export function overlay(...layers: readonly Entries[]): Entries {
  const merged = new Map<string, Entry>()
  for (const layer of layers) for (const [key, entry] of layer) merged.set(key, entry)
  return merged
}

type Weighed = { readonly entry: Entry } | { readonly why: string }

/** The project's entries over the user's. Refusals are problems: ignoring a wish silently would be worse. */
export function overlayProject(
  base: Entries,
  project: Entries,
): { readonly entries: Entries; readonly problems: readonly ConfigProblem[] } {
  if (project.size === 0) return { entries: base, problems: [] }
  const merged = new Map(base)
  const problems: ConfigProblem[] = []
  for (const [key, entry] of project) {
    const weighed = weigh(key, base.get(key), entry)
    if ('entry' in weighed) merged.set(key, weighed.entry)
    else problems.push({ file: entry.origin.where, line: entry.origin.line, column: entry.origin.column, key, message: weighed.why })
  }
  return { entries: merged, problems }
}

function weigh(key: string, base: Entry | undefined, entry: Entry): Weighed {
  const setting = settingOf(key)
  if (patternOf(key) !== key || setting?.project === 'refused')
    return { why: 'a project may not set this; move it to your own config file (it says where keys, records and permissions go)' }
  return setting?.project === 'stricter' ? stricter(setting, base, entry) : { entry }
}

/**
 * Of two values the one that permits less: a lower level, a smaller limit, more that is forbidden (lists are joined), fewer tools.
 * A project that asks for more than the user allows is told so.
 */
function stricter(setting: Setting, base: Entry | undefined, entry: Entry): Weighed {
  if (setting.type === 'choice')
    return atMost(setting.values.indexOf(String(entry.value)), setting.values.indexOf(String(base?.value)), { base, entry })
  if (setting.type === 'boolean') return entry.value === true || base?.value === false ? { entry } : tooMuch(base)
  if (typeof entry.value === 'number')
    return atMost(entry.value, typeof base?.value === 'number' ? base.value : Number.POSITIVE_INFINITY, { base, entry })
  const mine = isStrings(base?.value) ? base.value : undefined
  const theirs = isStrings(entry.value) ? entry.value : []
  if (setting.key.includes('.forbidden_')) return { entry: { ...entry, value: [...new Set([...(mine ?? []), ...theirs])] } }
  const added = mine === undefined ? [] : theirs.filter((word) => !mine.includes(word))
  return added.length === 0
    ? { entry }
    : { why: `a project may only leave out what you allow, and this adds ${added.map(quote).join(', ')}` }
}

function atMost(wished: number, allowed: number, { base, entry }: { base: Entry | undefined; entry: Entry }): Weighed {
  return wished <= allowed ? { entry } : tooMuch(base)
}

function tooMuch(base: Entry | undefined): Weighed {
  return { why: `a project may only make this stricter than your own setting (${shown(base?.value)}); change your own config file instead` }
}
