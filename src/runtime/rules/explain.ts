/** What the operator's rules say of one call, as if it were the first of a run: the data of `policy explain`. */

import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import type { Proposal, RunEvent } from '../event.ts'
import type { Rule } from './parse-rules.ts'
import { ruleThread } from './rule-thread.ts'

/** A rule whose target fits the call. */
export type RuleFinding = {
  /** As logs and receipts name it: `rule.NAME`. */
  readonly rule: string
  readonly file: string
  /** The call itself is denied; or it passes now, and the rest says when it would not. */
  readonly denies: boolean
  /** The run ends after the round of the call. */
  readonly endsRun: boolean
  readonly reason: string
  /** As the rule has them, where it has them. */
  readonly after?: Json
  readonly until?: Json
  readonly atMost?: number
}

/** The very threads of a run are asked. Rules that do not look at such a call are left out. */
export function explainRules(rules: readonly Rule[], proposal: Proposal): readonly RuleFinding[] {
  return rules.filter(({ target }) => target.matches(proposal)).map((rule) => findingOf(rule, proposal))
}

function findingOf(rule: Rule, { call, judgement }: Proposal): RuleFinding {
  const thread = ruleThread(rule)
  const proposed: RunEvent = { type: 'propose', id: call.id, call, judgement }
  const bid = thread.bid(thread.next(thread.init, proposed))
  const { after, until, atMost }: { readonly [key: string]: Json | undefined } = isJsonObject(rule.source) ? rule.source : {}
  return {
    rule: thread.name,
    file: rule.file,
    denies: bid.request?.some((event) => event.type === 'deny' && event.id === call.id) === true,
    endsRun: bid.block?.some(({ type }) => type === 'think') === true,
    reason: rule.reason,
    ...(after === undefined ? {} : { after }),
    ...(until === undefined ? {} : { until }),
    ...(typeof atMost === 'number' ? { atMost } : {}),
  }
}

function isJsonObject(value: Json): value is JsonObject {
  return isObject(value)
}
