/** Defines what a rule says about one changed path. */

import { count, quote } from '../../kit/text.ts'
import type { RuleName } from '../rules.ts'

/**
 * `deny`: the whole change set is dropped. `person`: only a person may allow it, at every level. `ask`: it is not harmless, so every level
 * but full asks.
 */
export type Weight = 'deny' | 'person' | 'ask'

/** `why` completes "path: …". */
export type Finding = { readonly weight: Weight; readonly rule: RuleName; readonly path: string; readonly why: string }

const named = 10

/** @returns one clause with the first ten paths, those with the same reason together, and the number of all */
export function tellFindings(findings: readonly Finding[]): string {
  const byReason = new Map<string, string[]>()
  for (const { path, why } of findings.slice(0, named)) byReason.set(why, [...(byReason.get(why) ?? []), quote(path)])
  const told = [...byReason].map(([why, paths]) => `${paths.join(', ')}: ${why}`).join('; ')
  return findings.length > named ? `${told}; and ${count(findings.length - named, 'more path')}` : told
}
