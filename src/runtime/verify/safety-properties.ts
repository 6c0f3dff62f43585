/** Defines what must never happen in a run, as monitors over its events: P1 to P6, P10 to P12, P16 and P19. */

import type { Property } from '../../kernel/explore.ts'
import { canonical } from '../../kit/json.ts'
import { broughtBy } from '../behaviours/start-events.ts'
import type { Mode, Proposal, RunEvent, Wiggum } from '../event.ts'
import type { RunLimits } from '../program.ts'
import { LATE } from './world.ts'

/** It has no other fields, so that all violations share one monitor state. */
const broken = { broken: true } as const

type Watched<M> = M | typeof broken

/** Builds a monitor that ends in `broken`: `step` returns `broken` or the next state. */
function never<M extends object>(name: string, init: M, step: (monitor: M, event: RunEvent) => Watched<M>): Property<RunEvent, Watched<M>> {
  const isBroken = (monitor: Watched<M>): monitor is typeof broken => monitor === broken
  return { name, init, next: (monitor, { event }) => (isBroken(monitor) ? monitor : step(monitor, event)), violated: isBroken }
}

/** `changes`: the digest of what each call changed, unless the gate forbade it. */
type PermittedCalls = { readonly calls: readonly string[]; readonly changes: { readonly [id: string]: string } }

export const onlyWhatTheGateLets = never<PermittedCalls>(
  'No call runs that the gate forbade, nor one that it never judged; nothing is applied that it forbade, nor what that call did not change.',
  { calls: [], changes: {} },
  (monitor, event) => {
    const { calls, changes } = monitor
    const brought = broughtBy(event)
    if (brought) return { calls: brought.filter(({ judgement }) => judgement.verdict !== 'deny').map(({ call }) => call.id), changes: {} }
    if (event.type === 'act') return calls.includes(event.id) ? monitor : broken
    if (event.type === 'apply') return changes[event.id] === event.review.digest ? monitor : broken
    if (event.type !== 'tool.changed' || event.review.verdict === 'deny') return monitor
    return { calls, changes: { ...changes, [event.id]: event.review.digest } }
  },
)

/** `plans`: what each call or change set is; `asks`: those that need a yes. */
type ApprovalWatch = {
  readonly plans: { readonly [id: string]: string }
  readonly asks: readonly string[]
  readonly shown: readonly string[]
  readonly allowed: readonly string[]
}

export const onlyAfterAYes = never<ApprovalWatch>(
  'A call or a change set that needs a yes runs or is applied only after one, given once, for its open gate and for the very plan or digest.',
  { plans: {}, asks: [], shown: [], allowed: [] },
  (monitor, event) => {
    const { plans, asks, shown, allowed } = monitor
    const brought = broughtBy(event)
    if (brought) return judged(brought)
    if (event.type === 'tool.changed') return changed(monitor, event)
    if (event.type === 'gate.open')
      return plans[event.id] === event.judgement.plan ? { ...monitor, asks: [...asks, event.id], shown: [...shown, event.id] } : broken
    if (event.type === 'act' || event.type === 'apply') return asks.includes(event.id) && !allowed.includes(event.id) ? broken : monitor
    if (event.type !== 'approval.decision') return monitor
    if (!shown.includes(event.id) || plans[event.id] !== event.plan) return broken
    return { ...monitor, shown: without(shown, event.id), allowed: event.allow ? [...allowed, event.id] : allowed }
  },
)

const without = (ids: readonly string[], id: string) => ids.filter((each) => each !== id)

function judged(proposals: readonly Proposal[]): ApprovalWatch {
  return {
    plans: Object.fromEntries(proposals.map(({ call, judgement }) => [call.id, judgement.plan])),
    asks: proposals.flatMap(({ call, judgement }) => (judgement.verdict === 'ask' ? [call.id] : [])),
    shown: [],
    allowed: [],
  }
}

/** A yes to the call is not a yes to its changes. */
function changed(
  { plans, asks, shown, allowed }: ApprovalWatch,
  { id, review }: Extract<RunEvent, { type: 'tool.changed' }>,
): ApprovalWatch {
  const others = without(asks, id)
  return {
    plans: { ...plans, [id]: review.digest },
    asks: review.verdict === 'ask' ? [...others, id] : others,
    shown: without(shown, id),
    allowed: without(allowed, id),
  }
}

const begins = (event: RunEvent) => ['think', 'judge', 'act', 'apply', 'check', 'retry', 'gate.open'].includes(event.type)
const stops = (event: RunEvent) => ['cancel', 'estop', 'halt', 'stalled'].includes(event.type)

export const nothingBeginsAfterAStop = never<{ readonly stopped: boolean }>(
  'After a cancel, an emergency stop, a halt or a stall no thought, call, check, iteration or question begins, and nothing is applied.',
  { stopped: false },
  ({ stopped }, event) => {
    if (stopped && begins(event)) return broken
    return { stopped: stopped || stops(event) }
  },
)

export const nothingAfterTheEnd = never<{ readonly finished: boolean }>(
  'A run ends once, and nothing happens in it after its end.',
  { finished: false },
  ({ finished }, event) => (finished ? broken : { finished: event.type === 'finish' }),
)

type SpendWatch = { readonly thinks: number; readonly tokens: number; readonly late: boolean }

/** Tokens stand for money too: the same code counts both. */
export function withinLimits({ maxToolRounds, maxTokens, maxMs }: RunLimits): Property<RunEvent, Watched<SpendWatch>> {
  return never<SpendWatch>(
    'No more rounds than the limit, no thought after the budget is spent, nothing begins after the deadline.',
    { thinks: 0, tokens: 0, late: false },
    (monitor, event) => {
      const { thinks, tokens, late } = monitor
      if (late && ['think', 'judge', 'act', 'apply'].includes(event.type)) return broken
      if (event.type === 'act') return thinks > maxToolRounds ? broken : monitor
      if (event.type === 'clock') return { ...monitor, late: late || (thinks > 0 && maxMs !== undefined && event.at >= LATE) }
      if (event.type === 'run.start') return { ...monitor, tokens: (maxTokens && event.continues?.wiggum?.tokens) || 0 }
      if (event.type === 'retry') return { ...monitor, thinks: 0 }
      if (event.type === 'model.done') return { ...monitor, tokens: maxTokens === undefined ? 0 : tokens + event.usage.inputTokens }
      if (event.type !== 'think' && event.type !== 'judge') return monitor
      return thinks > maxToolRounds || (maxTokens !== undefined && tokens > maxTokens) ? broken : { ...monitor, thinks: thinks + 1 }
    },
  )
}

export const onlyAnswersToQuestions = never<{ readonly started: boolean; readonly thinking: boolean; readonly checking: string }>(
  'A run starts once, and a reply, or the result of a check, is taken only while it is awaited.',
  { started: false, thinking: false, checking: '' },
  (monitor, event) => {
    if (event.type === 'check') return monitor.checking === '' ? { ...monitor, checking: event.id } : broken
    if (event.type === 'check.done') return monitor.checking === event.id ? { ...monitor, checking: '' } : broken
    if (event.type === 'run.start') return monitor.started ? broken : { ...monitor, started: true }
    if (event.type === 'think') return { ...monitor, thinking: true }
    if (event.type !== 'model.done' && event.type !== 'model.fail') return monitor
    return monitor.thinking ? { ...monitor, thinking: false } : broken
  },
)

type Flight = { readonly acts: readonly { readonly id: string; readonly writes: readonly string[] }[] }

export function takingTurns({ maxParallel }: RunLimits): Property<RunEvent, Watched<Flight>> {
  return never<Flight>(
    'No more calls run at once than the limit, and never two that write the same path.',
    { acts: [] },
    (monitor, event) => {
      if (event.type === 'tool.done' || event.type === 'drop') return { acts: monitor.acts.filter(({ id }) => id !== event.id) }
      if (event.type !== 'act') return monitor
      const { writes } = event.judgement
      const collides = monitor.acts.some((other) => other.writes.some((path) => writes.includes(path)))
      return collides || monitor.acts.length >= maxParallel ? broken : { acts: [...monitor.acts, { id: event.id, writes }] }
    },
  )
}

type Circling = {
  readonly acts: { readonly [id: string]: { readonly call: string; readonly changes: boolean } }
  readonly seen: { readonly [callAndResult: string]: number }
  readonly stuck: boolean
}

/** Compares the texts of the calls, where the thread compares digests. */
export function goingInCircles({ maxSameResults }: RunLimits): Property<RunEvent, Watched<Circling>> {
  return never<Circling>(
    'Nothing begins after the same call gave the same result too often with nothing new changed in between.',
    { acts: {}, seen: {}, stuck: false },
    (monitor, event) => {
      if (maxSameResults === undefined) return monitor
      if (monitor.stuck && begins(event)) return broken
      if (event.type === 'act') return { ...monitor, acts: { ...monitor.acts, [event.id]: callOf(event) } }
      if (event.type === 'deny' || event.type === 'drop')
        return counted(monitor, `${event.type} ${callOf(event).call} ${event.by} ${event.reason}`, false, maxSameResults)
      const act = event.type === 'tool.done' ? monitor.acts[event.id] : undefined
      if (event.type !== 'tool.done' || act === undefined) return monitor
      return counted(monitor, `${act.call} ${canonical(event.outcome)}`, act.changes && event.outcome.status === 'allowed', maxSameResults)
    },
  )
}

function callOf({ call, judgement }: Pick<Extract<RunEvent, { type: 'act' }>, 'call' | 'judgement'>) {
  return { call: `${call.name} ${canonical(call.input)}`, changes: judgement.risk !== 'low' || judgement.writes.length > 0 }
}

function counted(monitor: Circling, what: string, changes: boolean, most: number): Circling {
  const isNew = monitor.seen[what] === undefined
  const before = changes && isNew ? Object.fromEntries(Object.keys(monitor.seen).map((key) => [key, 0])) : monitor.seen
  const seen = { ...before, [what]: (before[what] ?? 0) + 1 }
  return { ...monitor, seen, stuck: monitor.stuck || (seen[what] ?? 0) >= most }
}

type Passed = readonly { readonly name: string; readonly tree: string }[]
type CheckWatch = { readonly names: readonly string[]; readonly running: string; readonly passed: Passed }

/** A start without checks has no names: its answer needs none. */
export const onlyAfterItsChecks = never<CheckWatch>(
  'A wiggum run ends well only after all its checks passed on one tree, and nothing that could change it came after them.',
  { names: [], running: '', passed: [] },
  (monitor, event) => {
    const { names, running, passed } = monitor
    if (event.type === 'run.start') return { ...monitor, names: event.wiggum?.checks.map(({ name }) => name) ?? [] }
    if (event.type === 'check') return { ...monitor, running: event.name }
    if (event.type === 'check.done' && event.pass) return { ...monitor, passed: [...passed, { name: running, tree: event.tree ?? '' }] }
    if (event.type === 'check.done' || begins(event)) return { ...monitor, passed: [] }
    if (event.type !== 'finish' || event.ending.code !== 'answered' || names.length === 0) return monitor
    const isOneTree = passed.every(({ tree }) => tree === passed[0]?.tree)
    return isOneTree && canonical(passed.map(({ name }) => name)) === canonical(names) ? monitor : broken
  },
)

/** `failures`: equal ones in a row; it compares texts, where the thread compares digests. */
type Iterating = Failing & { readonly limits: Wiggum | null; readonly left: number; readonly over: boolean }
type Failing = { readonly name: string; readonly failures: readonly string[] }

export const withinIterations = never<Iterating>(
  'A wiggum run has no more iterations than its limit, and none after the same failure came too often, a check could not be run, its checks changed, or its time is over.',
  { limits: null, left: 0, name: '', failures: [], over: false },
  (monitor, event) => {
    const { limits, left, name, failures, over } = monitor
    if (event.type === 'run.start' && event.wiggum) {
      const { limits = event.wiggum, iteration = 1 } = event.continues?.wiggum ?? {}
      const haveChanged = canonical(limits.checks) !== canonical(event.wiggum.checks)
      return { ...monitor, limits: event.wiggum, left: event.wiggum.maxIterations - iteration, over: haveChanged }
    }
    if (limits === null) return monitor
    if (over && begins(event)) return broken
    if (event.type === 'clock') return { ...monitor, over: over || event.at >= (limits.until ?? event.at + 1) }
    if (event.type === 'check') return { ...monitor, name: event.name }
    if (event.type === 'retry') return left === 0 ? broken : { ...monitor, left: left - 1 }
    if (event.type !== 'check.done' || event.pass) return monitor
    const failure = canonical([name, event.tree, event.evidence])
    const same = failures[0] === failure ? [...failures, failure] : [failure]
    return { ...monitor, failures: same, over: over || same.length >= limits.maxSame || event.notRun === true }
  },
)

export const modesHold = never<{ readonly mode: Mode }>(
  'No run is in wiggum mode without checks that end it, none changes its mode, and in wiggum mode nobody is asked.',
  { mode: 'structured' },
  (monitor, event) => {
    if (event.type === 'run.start') return event.mode === 'wiggum' && !event.wiggum?.checks.length ? broken : { mode: event.mode }
    if (event.type === 'gate.open') return monitor.mode === 'wiggum' ? broken : monitor
    return event.type === 'mode.set' && event.mode !== monitor.mode ? broken : monitor
  },
)
