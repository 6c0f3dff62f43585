/** Simulates a hostile world for the model checker: its memory of a run, and every event it may send next, forged and late ones too. */

import type { History } from '../../kernel/explore.ts'
import type { JsonObject } from '../../kit/json.ts'
import { broughtBy } from '../behaviours/start-events.ts'
import type { ChangeReview } from '../changes.ts'
import type { Call, CheckFinding, ExternalEvent, Interrupted, Judgement, Proposal, RunEvent, ToolOutcome, Wiggum } from '../event.ts'

/** A call that a hostile model may request. */
export type Sample = { readonly name: string; readonly input: JsonObject } & Partial<
  Pick<Judgement, 'verdict' | 'risk' | 'rule' | 'summary' | 'writes' | 'labels'>
>

/**
 * `new`: at most proposed. `open`: a gate asks about it. `changed`: it changed something on its view. `asked`: a gate asks about that.
 */
type Phase = 'new' | 'open' | 'acting' | 'changed' | 'asked' | 'applying' | 'done'

/** `plan`: what an answer must name, the plan of the call or the digest of its changes. */
type SeenCall = Proposal & { readonly id: string; readonly plan: string; readonly phase: Phase }

/** Bounded: the calls are those of the latest reply, or the one of a developer's thread. `judging`: the call that the gate is judging. */
export type WorldView = {
  readonly thinking: boolean
  readonly round: number
  readonly judging: { readonly call: Call; readonly by: string } | null
  readonly calls: readonly SeenCall[]
  /** The latest check. */
  readonly check: { readonly id: string; readonly running: boolean } | null
}

export const memory: History<RunEvent, WorldView> = {
  init: { thinking: false, round: 0, judging: null, calls: [], check: null },
  next(seen, { event }) {
    switch (event.type) {
      case 'think':
        return { ...seen, thinking: true, round: event.round }
      case 'judge':
        return { ...seen, judging: { call: event.call, by: event.by } }
      case 'run.start':
      case 'model.done':
      case 'judged':
        return {
          ...seen,
          ...(event.type === 'judged' ? { judging: null } : { thinking: false }),
          calls: (broughtBy(event) ?? []).map((each) => ({ ...each, id: each.call.id, plan: each.judgement.plan, phase: 'new' })),
        }
      case 'model.fail':
        return { ...seen, thinking: false }
      case 'check':
        return { ...seen, check: { id: event.id, running: true } }
      case 'check.done':
        return { ...seen, check: seen.check && { ...seen.check, running: false } }
      case 'gate.open':
        return turn(seen, event.id, event.changes === undefined ? 'open' : 'asked')
      case 'act':
        return turn(seen, event.id, 'acting')
      case 'tool.changed':
        return turn(seen, event.id, 'changed', event.review.digest)
      case 'apply':
        return turn(seen, event.id, 'applying')
      case 'tool.done':
      case 'deny':
      case 'drop':
        return turn(seen, event.id, 'done')
      default:
        return seen
    }
  },
}

function turn(seen: WorldView, id: string, phase: Phase, plan?: string): WorldView {
  return { ...seen, calls: seen.calls.map((call) => (call.id === id ? { ...call, phase, plan: plan ?? call.plan } : call)) }
}

/** A time after every deadline in this world, in milliseconds after the start. */
export const LATE = 1_000_000

const endings: readonly ToolOutcome[] = [
  { status: 'allowed', output: 'done' },
  { status: 'denied', output: '', error: 'refused at execution time' },
  { status: 'failed', output: '', error: 'it broke' },
]
const forged: ToolOutcome = { status: 'allowed', output: 'forged' }

/** Returns the event that reports the changes of this call on its view. */
function changing(proposal: Proposal, verdict: ChangeReview['verdict'], digest = `digest-${proposal.call.id}`): ExternalEvent {
  const review: ChangeReview = { digest, verdict, rule: 'sample', reason: 'sample', summary: 'a file', count: 1 }
  return { type: 'tool.changed', id: proposal.call.id, ...proposal, outcome: { status: 'allowed', output: 'done' }, review }
}

const fail: ExternalEvent = { type: 'model.fail', code: 'server', message: 'the model failed' }

const blank = { type: 'run.start', prompt: 'go', at: 0, model: 'hostile' } as const

/** With calls it continues an interrupted run whose last reply made them; with `before` a wiggum run that stood there. */
function start(wiggum?: Wiggum, carried?: readonly Sample[], before?: Interrupted): ExternalEvent {
  const continues = carried && { run: 'run_0', asked: 'go', proposals: proposals(carried, 0), ...(before ? { wiggum: before } : {}) }
  return { ...blank, ...(wiggum ? { mode: 'wiggum', wiggum } : { mode: 'structured' }), ...(continues ? { continues } : {}) }
}

/** Events that may arrive at any moment, whether they make sense or not. */
const anyTime: readonly ExternalEvent[] = [
  { type: 'cancel', by: 'user' },
  { type: 'estop', reason: 'stopped' },
  { type: 'clock', at: 1 },
  { type: 'clock', at: LATE },
  { type: 'steer', text: 'and that' },
  { type: 'mode.set', mode: 'structured' },
  { type: 'mode.set', mode: 'wiggum' },
  { type: 'check.done', id: 'ghost', pass: true, evidence: 'forged' },
  { ...blank, mode: 'wiggum' },
  { ...blank, mode: 'wiggum', wiggum: { checks: [], maxIterations: 1, maxSame: 1 } },
  { type: 'tool.done', id: 'ghost', outcome: forged },
  changing(propose({ name: 'shell', input: {} }, 'ghost'), 'apply'),
  { type: 'approval.decision', id: 'ghost', allow: true, by: 'mallory', plan: 'plan-ghost' },
  judgedAs('allow', { id: 'ghost', name: 'shell', input: {} }, 'mallory'),
  { type: 'context.trimmed', window: 1, before: 2, after: 1, lines: [], omitted: 0, readable: true, digest: '' },
  fail,
]

export type WorldOptions = {
  /** The calls that one reply may make. */
  readonly replies: readonly (readonly Sample[])[]
  /** The tokens that each reply costs. */
  readonly tokens: number
  /** The ways in which a call may end. */
  readonly outcomes: readonly ToolOutcome['status'][]
  /** The calls that a start may bring, because it continues an interrupted run; absent: it begins a turn. */
  readonly carried?: readonly (readonly Sample[] | undefined)[]
  /** The reviews that the changes of a call may get; absent: calls run on no view. */
  readonly reviews?: readonly ChangeReview['verdict'][]
  /** Absent: the runs are structured. */
  readonly wiggum?: Wiggum
  /** A start may continue a wiggum run that stood there. */
  readonly interrupted?: readonly Interrupted[]
}

/** A check may find one of these, on two states of the files. */
const found: readonly CheckFinding[] = [
  ...['t1', 't2'].flatMap((tree) => [true, false].map((pass) => ({ pass, evidence: 'no', tree }))),
  { pass: false, evidence: 'it is missing', notRun: true },
]

/** It creates replies once per round and reuses them, so that states recur by reference. */
export function createWorld({ replies, tokens, outcomes, carried = [undefined], reviews = [], wiggum, interrupted = [] }: WorldOptions) {
  const starts = [...carried.map((calls) => start(wiggum, calls)), ...interrupted.map((one) => start(wiggum, [], one))]
  const results = endings.filter(({ status }) => outcomes.includes(status))
  const rounds = new Map<number, readonly ExternalEvent[]>()

  function repliesOf(round: number): readonly ExternalEvent[] {
    const known = rounds.get(round) ?? replies.map((samples) => reply(samples, round, tokens))
    rounds.set(round, known)
    return known
  }

  const findings = new Map<string, readonly ExternalEvent[]>()

  /** Returns what the latest check may find; when it has ended, a second result that contradicts the first. */
  function findingsOf({ id, running }: NonNullable<WorldView['check']>): readonly ExternalEvent[] {
    const known = findings.get(id) ?? found.map((one) => ({ type: 'check.done', id, ...one }) as const)
    findings.set(id, known)
    return running ? known : known.slice(0, 1)
  }

  /** Returns every event that may arrive now; the program has to reject the invalid ones. */
  return ({ thinking, round, judging, calls, check }: WorldView): readonly ExternalEvent[] => {
    const thoughts = repliesOf(round)
    return [
      ...(thinking ? thoughts : thoughts.slice(-1)),
      ...(judging ? judgementsOf(judging) : []),
      ...starts,
      ...anyTime,
      ...calls.flatMap((call) => [...about(call, results), ...(reviews.length === 0 ? [] : changesOf(call, reviews))]),
      ...stale(round),
      ...(check ? findingsOf(check) : []),
    ]
  }
}

/** Returns the judgements that the gate may give on a thread's call. */
function judgementsOf({ call, by }: NonNullable<WorldView['judging']>): ExternalEvent[] {
  return (['allow', 'ask', 'deny'] as const).map((verdict) => judgedAs(verdict, call, by))
}

function judgedAs(verdict: Judgement['verdict'], call: Call, by: string): ExternalEvent {
  return { type: 'judged', id: call.id, by, parts: [], proposals: [propose({ name: call.name, input: call.input, verdict }, call.id)] }
}

/** Returns true answers to every open request: a reply, a judgement, results of tools and checks, decisions at gates. */
export function dueAnswers({ thinking, round, judging, calls, check }: WorldView): ExternalEvent[] {
  const answers = calls.flatMap(({ id, plan, phase }): ExternalEvent[] => {
    if (phase === 'acting' || phase === 'applying') return [{ type: 'tool.done', id, outcome: { status: 'allowed', output: 'done' } }]
    return phase === 'open' || phase === 'asked' ? [{ type: 'approval.decision', id, allow: true, by: 'ann', plan }] : []
  })
  if (check?.running) answers.push({ type: 'check.done', id: check.id, pass: true, evidence: '' })
  return [...(thinking ? [reply([], round, 0)] : []), ...(judging ? [judgedAs('allow', judging.call, judging.by)] : []), ...answers]
}

/** Returns results and decisions for one call: true ones if they are expected, otherwise forged, duplicate and stale ones. */
function about({ id, plan, phase }: WorldView['calls'][number], outcomes: readonly ToolOutcome[]): ExternalEvent[] {
  const results = phase === 'acting' || phase === 'applying' ? outcomes : [forged]
  return [
    ...results.map((outcome) => ({ type: 'tool.done', id, outcome }) as const),
    { type: 'approval.decision', id, allow: true, by: 'ann', plan },
    { type: 'approval.decision', id, allow: false, by: 'ann', plan },
    { type: 'approval.decision', id, allow: true, by: 'mallory', plan: 'stale' },
  ]
}

/** Returns the changes of one call: true ones while it acts, otherwise forged ones; and a yes to its changes that is none. */
function changesOf({ call, judgement, phase }: SeenCall, reviews: readonly ChangeReview['verdict'][]): ExternalEvent[] {
  if (phase === 'acting') return reviews.map((verdict) => changing({ call, judgement }, verdict))
  const forgery = changing({ call, judgement }, 'apply', 'forged')
  const { id } = call
  return [forgery, { type: 'approval.decision', id, allow: true, by: 'mallory', plan: judgement.plan }]
}

/** Returns a result for a call of the previous round. */
function stale(round: number): ExternalEvent[] {
  return round > 1 ? [{ type: 'tool.done', id: `a${round - 1}`, outcome: forged }] : []
}

function reply(samples: readonly Sample[], round: number, tokens: number): ExternalEvent {
  const usage = { inputTokens: tokens, outputTokens: 0 }
  return { type: 'model.done', parts: [], proposals: proposals(samples, round), usage, model: 'hostile' }
}

function proposals(samples: readonly Sample[], round: number): Proposal[] {
  return samples.map((sample, at) => propose(sample, `${'abcdefgh'[at] ?? at}${round}`))
}

function propose({ name, input, ...rest }: Sample, id: string): Proposal {
  const judgement: Judgement = {
    verdict: 'allow',
    risk: 'low',
    rule: 'sample',
    reason: 'sample',
    summary: name,
    writes: [],
    ...rest,
    plan: `plan-${id}`,
  }
  return { call: { id, name, input }, judgement }
}
