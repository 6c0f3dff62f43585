/** Converts the rules of a run to journal data and back, so that a replay applies the same rules. */

import { isObject, type Json } from '../../kit/json.ts'
import type { Places } from './condition.ts'
import { parseRules, type Rule } from './parse-rules.ts'
import { type RuleThread, ruleThread } from './rule-thread.ts'

/** The rules in the order of the run. */
export type JournalledRules = Places & { readonly list: readonly { readonly file: string; readonly rule: Json }[] }

export function journalRules(rules: readonly Rule[], places: Places): JournalledRules {
  return { ...places, list: rules.map(({ file, source }) => ({ file, rule: source })) }
}

/** @returns undefined when the data is not from `journalRules`, or no longer parses. */
export function threadsOf(journalled: unknown): RuleThread[] | undefined {
  if (!isObject(journalled)) return undefined
  const { workspace, home, list } = journalled
  if (typeof workspace !== 'string' || typeof home !== 'string' || !Array.isArray(list)) return undefined
  const read = list.map((one) => ruleOf(one, { workspace, home }))
  const known = read.filter((rule) => rule !== undefined)
  return known.length === list.length ? known.map(ruleThread) : undefined
}

function ruleOf(given: unknown, places: Places): Rule | undefined {
  if (!isObject(given) || typeof given.file !== 'string' || given.rule === undefined) return undefined
  const { rules } = parseRules({ text: JSON.stringify(given.rule), file: given.file, places })
  return rules.length === 1 ? rules[0] : undefined
}
