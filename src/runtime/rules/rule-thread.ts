/** Applies a user's rules: as b-threads of a run, to the changes of a command that has ended, and again in a replay. */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import { isObject, type Json } from '../../kit/json.ts'
import { count, quote } from '../../kit/text.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../behaviours/refusals.ts'
import type { Change } from '../changes.ts'
import type { Proposal, RunEvent } from '../event.ts'
import type { Places } from './condition.ts'
import { proposalOf, type SampleCall } from './matcher.ts'
import { parseRules, type Rule } from './parse-rules.ts'

type Proposed = Extract<RunEvent, { type: 'propose' }>

type RuleState = {
  /** A call matched `after`, or the rule has no `after`. */
  readonly armed: boolean
  /** A call fulfilled `until`: the rule no longer applies. */
  readonly lifted: boolean
  readonly count: number
  /** Calls in flight that lift the rule if they succeed. */
  readonly lifting: readonly string[]
  readonly refusals: Refusals
  /** Blocks every further `think`. */
  readonly shut: boolean
}

/** Describes the rule for the model checker: `samples` are calls that the rule matches, `burst` is one call more than the rule lets pass. */
export type RuleThread = BThread<RuleState, RunEvent> & { readonly samples: readonly SampleCall[]; readonly burst: readonly SampleCall[] }

/** The checker does not explore longer bursts. */
const MAX_BURST = 8

/**
 * Returns a b-thread that blocks the act of each forbidden call and requests the denial under the rule's name. It decides once, when a call
 * is proposed, from the earlier proposals and the calls that succeeded in earlier rounds. A requested call counts even if it is refused; so
 * another rule, which can only refuse more, never loosens this rule.
 */
export function ruleThread(rule: Rule): RuleThread {
  const wait: readonly Pattern<RunEvent>[] = [{ type: 'propose', match: (event) => event.type === 'propose' && isOfInterest(rule, event) }]
  return {
    name: `rule.${rule.name}`,
    priority: 12,
    init: { armed: rule.after === undefined, lifted: false, count: 0, lifting: [], refusals: noRefusals, shut: false },
    samples: samplesOf(rule),
    burst: burstOf(rule),
    bid: ({ lifted, lifting, refusals, shut }) => ({
      wait: [...(lifted ? [] : wait), ...watchLifting(rule, lifted), ...lifting.map((id) => ({ type: 'tool.done', id }) as const)],
      block: [...blockedEffects(refusals), ...(shut ? [{ type: 'think' } as const] : [])],
      request: denials(refusals),
    }),
    next(state, event) {
      if (event.type === 'propose') return proposed(state, event, rule)
      if (event.type === 'deny') return { ...state, refusals: denied(state.refusals, event.id) }
      if (event.type === 'act') return { ...state, lifting: [...state.lifting, event.id] }
      if (event.type !== 'tool.done') return state
      return {
        ...state,
        lifting: state.lifting.filter((id) => id !== event.id),
        lifted: state.lifted || event.outcome.status === 'allowed',
      }
    },
  }
}

/** A rule about changes is tried with one call of a file tool; what commands change is explored for every verdict of the gate. */
function samplesOf(rule: Rule): SampleCall[] {
  if (rule.changes) return rule.changes.samples.filter((sample) => isTarget(rule, proposalOf(sample))).slice(0, 1)
  return [rule.after, rule.until, rule.target].flatMap((matcher) => (matcher?.sample ? [matcher.sample] : []))
}

/** Tells whether the rule blocks this call, its history aside. */
function isTarget({ target, changes, asks }: Rule, proposal: Proposal): boolean {
  return target.matches(proposal) && (changes === undefined || (!asks && changes.matchesCall(proposal)))
}

function burstOf({ target, atMost = 0 }: Rule): SampleCall[] {
  return target.sample && atMost > 0 && atMost < MAX_BURST
    ? Array.from({ length: atMost + 1 }, () => target.sample).filter((sample) => sample !== undefined)
    : []
}

function watchLifting({ until }: Rule, lifted: boolean): Pattern<RunEvent>[] {
  return until && !lifted ? [{ type: 'act', match: (event) => event.type === 'act' && until.matches(event) }] : []
}

function isOfInterest(rule: Rule, event: Proposed): boolean {
  return isTarget(rule, event) || rule.after?.matches(event) === true
}

/** A call may match both `after` and the target: the first such call passes. */
function proposed(state: RuleState, event: Proposed, rule: Rule): RuleState {
  const armed = state.armed || rule.after?.matches(event) === true
  if (!state.armed || !isTarget(rule, event)) return { ...state, armed }
  const count = Math.min(state.count + 1, (rule.atMost ?? 0) + 1)
  return count > (rule.atMost ?? 0) ? forbid({ ...state, count }, event, rule) : { ...state, count }
}

function forbid(state: RuleState, { call, judgement }: Proposed, { name, blocks, reason }: Rule): RuleState {
  const refusal = { call, judgement, by: `rule.${name}`, reason }
  return {
    ...state,
    shut: state.shut || blocks.includes('think'),
    refusals: blocks.includes('act') ? refuse(state.refusals, refusal) : state.refusals,
  }
}

/** `rule` is the name in logs and receipts. */
export type RuleOnChanges = { readonly verdict: 'deny' | 'ask'; readonly rule: `rule.${string}`; readonly reason: string }

/**
 * Asks the rules about the changes of a command that has ended. A rule that blocks goes before one that asks. Without a proposal the
 * changes are those of a whole attempt, and every rule is about them.
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

/** The rules of a run in their order, as data of the journal, so that a replay applies the same rules. */
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
