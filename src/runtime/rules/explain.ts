/** Explains what the operator's rules do to one call, as if it were the first of a run: the data of `policy explain`. */

import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import type { Proposal, RunEvent } from '../event.ts'
import type { Rule } from './parse-rules.ts'
import { ruleThread } from './rule-thread.ts'

/** A rule whose target matches the call. */
export type RuleFinding = {
  /** The name in logs and receipts: `rule.NAME`. */
  readonly rule: string
  readonly file: string
  /** The rule denies the call; otherwise the call passes now, and the other fields say when it would not. */
  readonly denies: boolean
  /** The run ends after the round of this call. */
  readonly endsRun: boolean
  readonly reason: string
  /** As written in the rule, if present. */
  readonly after?: Json
  readonly until?: Json
  readonly atMost?: number
  /** The rule's condition on changes, as written; the rule `asks` about matching changes, or drops them. */
  readonly changes?: Json
  readonly asks?: true
}

/** Asks the same threads that a run uses. It leaves out rules that do not match the call. */
export function explainRules(rules: readonly Rule[], proposal: Proposal): readonly RuleFinding[] {
  const found = rules.filter(({ target }) => target.matches(proposal)).map((rule) => findingOf(rule, proposal))
  // A call that only reads, or a file tool that writes another file, makes no change that such a rule covers.
  const changesElse = ({ changes, denies }: RuleFinding) =>
    changes !== undefined && !denies && (isReading(proposal) || isFileTool(proposal))
  return found.filter((finding) => !changesElse(finding))
}

function isReading({ judgement }: Proposal): boolean {
  return judgement.risk === 'low'
}

function isFileTool({ call }: Proposal): boolean {
  return call.name.startsWith('file_')
}

function findingOf(rule: Rule, { call, judgement }: Proposal): RuleFinding {
  const thread = ruleThread(rule)
  const proposed: RunEvent = { type: 'propose', id: call.id, call, judgement }
  const bid = thread.bid(thread.next(thread.init, proposed))
  const { after, until, atMost, changes }: { readonly [key: string]: Json | undefined } = isJsonObject(rule.source) ? rule.source : {}
  return {
    rule: thread.name,
    file: rule.file,
    denies: bid.request?.some((event) => event.type === 'deny' && event.id === call.id) === true,
    endsRun: bid.block?.some(({ type }) => type === 'think') === true,
    reason: rule.reason,
    after,
    until,
    ...(typeof atMost === 'number' ? { atMost } : {}),
    changes,
    asks: rule.asks,
  }
}

function isJsonObject(value: Json): value is JsonObject {
  return isObject(value)
}
