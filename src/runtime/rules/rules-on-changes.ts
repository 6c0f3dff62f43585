/** Asks the operator's rules about the changes of a command that has ended. */

import { count } from '../../kit/count.ts'
import { quote } from '../../kit/text.ts'
import type { Change } from '../changes.ts'
import type { Proposal } from '../event.ts'
import type { Rule } from './parse-rules.ts'

/** `rule` is the name in logs and receipts. */
export type RuleOnChanges = { readonly verdict: 'deny' | 'ask'; readonly rule: `rule.${string}`; readonly reason: string }

/**
 * A rule that blocks goes before one that asks. Without a proposal the changes are those of a whole attempt, and every rule is about them.
 */
export function rulesOnChanges(rules: readonly Rule[], changes: readonly Change[], proposal?: Proposal): RuleOnChanges | undefined {
  const found = rules.flatMap((rule) => {
    if (rule.changes === undefined || (proposal && !rule.target.matches(proposal))) return []
    const touched = changes.filter(rule.changes.matches)
    return touched.length > 0 ? [{ rule, touched }] : []
  })
  const [first] = [...found.filter(({ rule }) => !rule.asks), ...found]
  if (first === undefined) return undefined
  const { rule, touched } = first
  const paths = touched.slice(0, 3).map(({ path }) => quote(path))
  const more = touched.length > paths.length ? ` and ${count(touched.length - paths.length, 'more path')}` : ''
  return { verdict: rule.asks ? 'ask' : 'deny', rule: `rule.${rule.name}`, reason: `${rule.reason} (${paths.join(', ')}${more})` }
}
