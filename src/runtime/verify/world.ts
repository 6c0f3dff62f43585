/** Simulates a hostile world for the model checker: its memory of a run, and every event it may send next, forged and late ones too. */

import type { History } from '../../kernel/explore.ts'
import type { JsonObject } from '../../kit/json.ts'
import type { Call, ExternalEvent, Judgement, Proposal, RunEvent, ToolOutcome } from '../event.ts'

/** A call that a hostile model may request. */
export type Sample = { readonly name: string; readonly input: JsonObject } & Partial<
  Pick<Judgement, 'verdict' | 'risk' | 'rule' | 'summary' | 'writes'>
>

/** `new`: at most proposed. `open`: a gate asks about it. */
type Phase = 'new' | 'open' | 'acting' | 'done'

/** Bounded: the calls are those of the latest reply, or the one of a developer's thread. `judging`: the call that the gate is judging. */
export type Seen = {
  readonly thinking: boolean
  readonly round: number
  readonly judging: { readonly call: Call; readonly by: string } | null
  readonly calls: readonly { readonly id: string; readonly plan: string; readonly phase: Phase }[]
}

export const memory: History<RunEvent, Seen> = {
  init: { thinking: false, round: 0, judging: null, calls: [] },
  next(seen, { event }) {
    switch (event.type) {
      case 'think':
        return { ...seen, thinking: true, round: event.round }
      case 'judge':
        return { ...seen, judging: { call: event.call, by: event.by } }
      case 'model.done':
      case 'judged':
        return {
          ...seen,
          ...(event.type === 'judged' ? { judging: null } : { thinking: false }),
          calls: event.proposals.map(({ call, judgement }) => ({ id: call.id, plan: judgement.plan, phase: 'new' })),
        }
      case 'model.fail':
        return { ...seen, thinking: false }
      case 'gate.open':
        return turn(seen, event.id, 'open')
      case 'act':
        return turn(seen, event.id, 'acting')
      case 'tool.done':
      case 'deny':
        return turn(seen, event.id, 'done')
      default:
        return seen
    }
  },
}

function turn(seen: Seen, id: string, phase: Phase): Seen {
  return { ...seen, calls: seen.calls.map((call) => (call.id === id ? { ...call, phase } : call)) }
}

/** A time after every deadline in this world, in milliseconds after the start. */
export const LATE = 1_000_000

const endings: readonly ToolOutcome[] = [
  { status: 'allowed', output: 'done' },
  { status: 'denied', output: '', error: 'refused at execution time' },
  { status: 'failed', output: '', error: 'it broke' },
]
const forged: ToolOutcome = { status: 'allowed', output: 'forged' }

const fail: ExternalEvent = { type: 'model.fail', code: 'server', message: 'the model failed' }

/** Events that may arrive at any moment, whether they make sense or not. */
const anyTime: readonly ExternalEvent[] = [
  { type: 'run.start', prompt: 'go', mode: 'structured', at: 0, model: 'hostile' },
  { type: 'cancel', by: 'user' },
  { type: 'estop', reason: 'stopped' },
  { type: 'clock', at: 1 },
  { type: 'clock', at: LATE },
  { type: 'mode.set', mode: 'structured' },
  { type: 'mode.set', mode: 'wiggum' },
  { type: 'check.done', id: 'ghost', pass: true, evidence: 'forged' },
  { type: 'tool.done', id: 'ghost', outcome: forged },
  { type: 'approval.decision', id: 'ghost', allow: true, by: 'mallory', plan: 'plan-ghost' },
  judgedAs('allow', { id: 'ghost', name: 'shell', input: {} }, 'mallory'),
  fail,
]

export type WorldOptions = {
  /** The calls that one reply may make. */
  readonly replies: readonly (readonly Sample[])[]
  /** The tokens that each reply costs. */
  readonly tokens: number
  /** The ways in which a call may end. */
  readonly outcomes: readonly ToolOutcome['status'][]
}

/** It creates replies once per round and reuses them, so that states recur by reference. */
export function createWorld({ replies, tokens, outcomes }: WorldOptions) {
  const results = endings.filter(({ status }) => outcomes.includes(status))
  const rounds = new Map<number, readonly ExternalEvent[]>()

  function repliesOf(round: number): readonly ExternalEvent[] {
    const known = rounds.get(round) ?? replies.map((samples) => reply(samples, round, tokens))
    rounds.set(round, known)
    return known
  }

  /** Returns every event that may arrive now; the program has to reject the invalid ones. */
  return ({ thinking, round, judging, calls }: Seen): readonly ExternalEvent[] => {
    const thoughts = repliesOf(round)
    return [
      ...(thinking ? thoughts : thoughts.slice(-1)),
      ...(judging ? judgementsOf(judging) : []),
      ...anyTime,
      ...calls.flatMap((call) => about(call, results)),
      ...stale(round),
    ]
  }
}

/** Returns the judgements that the gate may give on a thread's call. */
function judgementsOf({ call, by }: NonNullable<Seen['judging']>): ExternalEvent[] {
  return (['allow', 'ask', 'deny'] as const).map((verdict) => judgedAs(verdict, call, by))
}

function judgedAs(verdict: Judgement['verdict'], call: Call, by: string): ExternalEvent {
  return { type: 'judged', id: call.id, by, parts: [], proposals: [propose({ name: call.name, input: call.input, verdict }, call.id)] }
}

/** Returns true answers to every open request: a reply, a judgement, tool results, decisions at gates. */
export function dueAnswers({ thinking, round, judging, calls }: Seen): ExternalEvent[] {
  const answers = calls.flatMap(({ id, plan, phase }): ExternalEvent[] => {
    if (phase === 'acting') return [{ type: 'tool.done', id, outcome: { status: 'allowed', output: 'done' } }]
    return phase === 'open' ? [{ type: 'approval.decision', id, allow: true, by: 'ann', plan }] : []
  })
  return [...(thinking ? [reply([], round, 0)] : []), ...(judging ? [judgedAs('allow', judging.call, judging.by)] : []), ...answers]
}

/** Returns results and decisions for one call: true ones if they are expected, otherwise forged, duplicate and stale ones. */
function about({ id, plan, phase }: Seen['calls'][number], outcomes: readonly ToolOutcome[]): ExternalEvent[] {
  const results = phase === 'acting' ? outcomes : [forged]
  return [
    ...results.map((outcome) => ({ type: 'tool.done', id, outcome }) as const),
    { type: 'approval.decision', id, allow: true, by: 'ann', plan },
    { type: 'approval.decision', id, allow: false, by: 'ann', plan },
    { type: 'approval.decision', id, allow: true, by: 'mallory', plan: 'stale' },
  ]
}

/** Returns a result for a call of the previous round. */
function stale(round: number): ExternalEvent[] {
  return round > 1 ? [{ type: 'tool.done', id: `a${round - 1}`, outcome: forged }] : []
}

function reply(samples: readonly Sample[], round: number, tokens: number): ExternalEvent {
  const proposals = samples.map((sample, at) => propose(sample, `${'abcdefgh'[at] ?? at}${round}`))
  return { type: 'model.done', parts: [], proposals, usage: { inputTokens: tokens, outputTokens: 0 }, model: 'hostile' }
}

function propose({ name, input, ...said }: Sample, id: string): Proposal {
  const judgement: Judgement = {
    verdict: 'allow',
    risk: 'low',
    rule: 'sample',
    reason: 'sample',
    summary: name,
    writes: [],
    ...said,
    plan: `plan-${id}`,
  }
  return { call: { id, name, input }, judgement }
}
