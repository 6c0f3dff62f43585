/** Lists the properties by the names that the design gives them. */

import { createEngine } from '../../kernel/engine.ts'
import { LIVELOCK, type Property, type Rest } from '../../kernel/explore.ts'
import { EXTERNAL, type Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import { broughtBy } from '../behaviours/start-events.ts'
import type { Label, RunEvent } from '../event.ts'
import type { RunLimits } from '../program.ts'
import { externalTypes } from '../vocabulary.ts'
import {
  goingInCircles,
  modesHold,
  nothingAfterTheEnd,
  nothingBeginsAfterAStop,
  onlyAfterAYes,
  onlyAfterItsChecks,
  onlyAnswersToQuestions,
  onlyWhatTheGateLets,
  takingTurns,
  withinIterations,
  withinLimits,
} from './safety-properties.ts'
import { read } from './scenes.ts'
import { createWorld, memory, type WorldView } from './world.ts'

/** `holds` is null if the checker decided nothing; `note` says why. */
export type PropertyFinding = { readonly id: string; readonly says: string; readonly holds: boolean | null; readonly note?: string }

export const P9 = 'A replay of the external events selects the same events, in the same order.'

export function propertiesOf(limits: RunLimits): { readonly id: string; readonly property: Property<RunEvent> }[] {
  return [
    { id: 'P1', property: onlyWhatTheGateLets },
    { id: 'P2', property: onlyAfterAYes },
    { id: 'P3', property: nothingBeginsAfterAStop },
    { id: 'P4', property: nothingAfterTheEnd },
    { id: 'P5', property: withinLimits(limits) },
    { id: 'P6', property: onlyAfterItsChecks },
    { id: 'P7', property: resolvedOnce },
    { id: 'P8', property: somebodyOwesAnAnswer },
    { id: 'P10', property: takingTurns(limits) },
    { id: 'P11', property: onlyAnswersToQuestions },
    { id: 'P12', property: goingInCircles(limits) },
    { id: 'P13', property: onlyTheWorldAnswers },
    { id: 'P14', property: stopsGetThrough },
    { id: 'P16', property: modesHold },
    { id: 'P17', property: nothingLeavesUnasked },
    { id: 'P18', property: withinChannel(limits) },
    { id: 'P19', property: withinIterations },
  ]
}

/** `unanswered`: why P15 is undecided although nothing broke. */
type SearchOutcome = { readonly broken?: string; readonly cut: readonly string[]; readonly unanswered?: string }

/**
 * Returns all findings in order. `broken` names the property that broke; after a break, or in a search that was `cut`, the others are
 * undecided.
 */
export function findings({ broken, cut, unanswered }: SearchOutcome): PropertyFinding[] {
  const explored = propertiesOf({ maxToolRounds: 0, maxParallel: 0 }).map(({ id, property: { name } }) => ({ id, says: name, name }))
  const asked = [
    ...explored,
    { id: 'P9', says: P9, name: P9 },
    { id: 'P15', says: P15, name: P15 },
    { id: 'P0', says: 'Every chain of consequences comes to rest.', name: LIVELOCK },
  ]
  const note = broken === undefined ? `cut off after too many states: ${cut.join(', ')}` : 'not decided'
  const open = broken !== undefined || cut.length > 0
  const decided = asked.map(({ id, says, name }): PropertyFinding => {
    if (name === broken) return { id, says, holds: false }
    if (open) return { id, says, holds: null, note }
    return name === P15 && unanswered !== undefined ? { id, says, holds: null, note: unanswered } : { id, says, holds: true }
  })
  const order = (id: string) => Number(id.slice(1))
  return decided.sort((a, b) => order(a.id) - order(b.id))
}

type ReadState = { readonly labels: readonly Label[]; readonly sending: readonly string[]; readonly broken: boolean }

/** `sending`: calls in flight that can send something and that nobody allowed; a file that another call writes meanwhile may reach them. */
const nothingLeavesUnasked: Property<RunEvent, ReadState> = {
  name: 'Once content of others and something private were read, nothing that can send anything runs without a yes.',
  init: { labels: [], sending: [], broken: false },
  next(read, { event }) {
    if (event.type === 'run.start') return { ...read, labels: readsOf(event.labels) }
    if (event.type === 'tool.done' || event.type === 'tool.changed')
      return { ...read, sending: read.sending.filter((id) => id !== event.id) }
    if (event.type !== 'act') return read
    const { labels = [] } = event.judgement
    const known = [...new Set([...read.labels, ...readsOf(labels)])].sort()
    const sending = labels.includes('sends') && event.approval === undefined ? [...read.sending, event.id] : read.sending
    return { labels: known, sending, broken: read.broken || (known.length === 2 && sending.length > 0) }
  },
  violated: ({ broken }) => broken,
}

const readsOf = (labels: readonly Label[] = []) => labels.filter((label) => label !== 'sends')

/** Defines P18: people on a channel get no more than its profile permits. */
function withinChannel({ channel }: Pick<RunLimits, 'channel'>): Property<RunEvent, { readonly beyond: boolean }> {
  const isBeyond = (event: RunEvent) => {
    if (event.type === 'apply') return channel?.readonly === true
    if (event.type !== 'act') return false
    return channel?.tools?.includes(event.call.name) === false || (channel?.readonly === true && event.judgement.writes.length > 0)
  }
  return {
    name: 'On a channel with a profile only its tools run, and where it only reads nothing is written or applied.',
    init: { beyond: false },
    next: (monitor, { event }) => (isBeyond(event) ? { beyond: true } : monitor),
    violated: ({ beyond }) => beyond,
  }
}

const onlyTheWorldAnswers: Property<RunEvent, { readonly forged: boolean }> = {
  name: 'Starts, replies, results, decisions, stops and the clock come from outside; no thread makes one up.',
  init: { forged: false },
  next: (monitor, { event, source }) => (source !== EXTERNAL && Object.hasOwn(externalTypes, event.type) ? { forged: true } : monitor),
  violated: ({ forged }) => forged,
}

/** A cancel has no effect after an emergency stop; an emergency stop still has one after a cancel. */
export const stopsGetThrough: Property<RunEvent, { readonly cancelled: boolean; readonly stopped: boolean; readonly over: boolean }> = {
  name: 'Until one came or the run is over, an emergency stop and a cancel are accepted; a halt that is asked for happens.',
  init: { cancelled: false, stopped: false, over: false },
  next(monitor, { event }) {
    if (event.type === 'cancel') return { ...monitor, cancelled: true }
    if (event.type === 'estop') return { ...monitor, stopped: true }
    return event.type === 'finish' ? { ...monitor, over: true } : monitor
  },
  atQuiescence({ cancelled, stopped, over }, { offers, blocked }) {
    if (blocked.some(({ event }) => event.type === 'halt')) return true
    if (stopped || over) return false
    const takes = (type: RunEvent['type']) => offers.some((offer) => offer.type === type)
    return !takes('estop') || !(cancelled || takes('cancel'))
  },
}

/** Checks P15, a property of possibility: some run answers after more than one round of calls. */
export const P15 = 'Some run answers after more than one round of calls.'

const ROUNDS = 2

/** Never breaks by itself. It calls `onAnswer` for each run that answers after more than one round; the search must see at least one. */
export function answersLate(onAnswer: () => void): Property<RunEvent, { readonly rounds: number; readonly answered: boolean }> {
  return {
    name: P15,
    init: { rounds: 0, answered: false },
    next(progress, { event }) {
      if (event.type === 'observe') return { ...progress, rounds: Math.min(progress.rounds + 1, ROUNDS) }
      if (event.type !== 'finish' || event.ending.code !== 'answered') return progress
      if (progress.rounds >= ROUNDS) onAnswer()
      return { ...progress, answered: true }
    },
  }
}

/** `refused` holds the external events that the program rejected. */
export type SearchAttempt = {
  readonly answered: boolean
  readonly trace: readonly Selection<RunEvent>[]
  readonly refused: readonly RunEvent[]
}

/** Runs the simplest such run, in a world that cooperates. If it ends without an answer, its trace shows what prevents one. */
export function attemptAnswer(threads: readonly AnyThread<RunEvent>[]): SearchAttempt {
  const world = createWorld({ replies: [[], [read]], tokens: 0, outcomes: ['allowed'] })
  const engine = createEngine<RunEvent>({ threads })
  const trace: Selection<RunEvent>[] = [...engine.superstep().selected]
  for (;;) {
    const seen = trace.reduce(memory.next, memory.init)
    const event = helpful(world(seen), seen, trace.length === 0)
    if (event === undefined) break
    engine.send(event)
    const { selected, rejected } = engine.superstep()
    trace.push(...selected)
    if (rejected.length > 0) return { answered: false, trace, refused: rejected.map(({ event }) => event) }
  }
  const last = trace.at(-1)?.event
  return { answered: last?.type === 'finish' && last.ending.code === 'answered', trace, refused: [] }
}

/** Returns a start, a reply with one call in each of the first rounds and without a call after that, and the true result of each call. */
function helpful(offers: readonly RunEvent[], { thinking, round, judging, calls }: WorldView, isNew: boolean): RunEvent | undefined {
  if (isNew) return offers.find(({ type }) => type === 'run.start')
  if (thinking) return offers.find((event) => event.type === 'model.done' && (event.proposals.length === 0) === round > ROUNDS)
  if (judging) return offers.find((event) => event.type === 'judged' && event.id === judging.call.id)
  const acting = calls.find(({ phase }) => phase === 'acting')
  return acting && offers.find((event) => event.type === 'tool.done' && event.id === acting.id)
}

/** Defines what must happen in a run: every call is resolved once (P7), and an unfinished run waits for somebody (P8). */
type Stage = 'new' | 'proposed' | 'acting' | 'changed' | 'applying' | 'done'
/** For each event, the stage that it leads to and the stages that may precede it. */
const moves: { readonly [type: string]: { readonly from: readonly Stage[]; readonly to: Stage } } = {
  propose: { from: ['new'], to: 'proposed' },
  act: { from: ['proposed'], to: 'acting' },
  deny: { from: ['proposed'], to: 'done' },
  'tool.changed': { from: ['acting'], to: 'changed' },
  apply: { from: ['changed'], to: 'applying' },
  drop: { from: ['changed'], to: 'done' },
  'tool.done': { from: ['acting', 'applying'], to: 'done' },
}

const resolvedOnce: Property<RunEvent, { readonly calls: { readonly [id: string]: Stage }; readonly broken: boolean }> = {
  name: 'Every call is proposed once and then resolved exactly once: by its own result, by a denial, or by dropping what it changed.',
  init: { calls: {}, broken: false },
  violated: ({ broken }) => broken,
  next(ledger, { event }) {
    const { calls } = ledger
    const open = Object.values(calls).some((stage) => stage !== 'done')
    const brought = broughtBy(event)
    if (brought) return { calls: Object.fromEntries(brought.map(({ call }) => [call.id, 'new'])), broken: open }
    if (event.type === 'observe') return { calls: {}, broken: open || event.results.length !== Object.keys(calls).length }
    if (event.type === 'finish') return { ...ledger, broken: open }
    const move = moves[event.type]
    if (move === undefined || !('id' in event)) return ledger
    const stage = calls[event.id]
    const isNext = stage !== undefined && move.from.includes(stage)
    return isNext ? { ...ledger, calls: { ...calls, [event.id]: move.to } } : { ...ledger, broken: true }
  },
}

type Owed = {
  readonly started: boolean
  readonly over: boolean
  readonly stopped: boolean
  readonly thinking: boolean
  readonly judging: string | null
  readonly checking: string | null
  readonly acting: readonly string[]
  readonly gates: readonly string[]
  /** The run was ended as stalled although somebody owed an answer. */
  readonly cut: boolean
}

export const somebodyOwesAnAnswer: Property<RunEvent, Owed> = {
  name: 'A run at rest that is not over waits for a model, a tool, a check or an open gate, and would take the answer; it is not ended as stalled meanwhile.',
  init: { started: false, over: false, stopped: false, thinking: false, judging: null, checking: null, acting: [], gates: [], cut: false },
  violated: ({ cut }) => cut,
  next(owed, { event }) {
    switch (event.type) {
      case 'run.start':
        return { ...owed, started: true }
      case 'cancel':
      case 'estop':
      case 'halt':
        return { ...owed, stopped: true }
      case 'stalled':
        return { ...owed, stopped: true, cut: isOwed(owed) }
      case 'finish':
        return { ...owed, over: true }
      case 'think':
        return { ...owed, thinking: true }
      case 'model.done':
      case 'model.fail':
        return { ...owed, thinking: false }
      case 'judge':
        return { ...owed, judging: event.id }
      case 'judged':
        return { ...owed, judging: null }
      case 'check':
        return { ...owed, checking: event.id }
      case 'check.done':
        return { ...owed, checking: null }
      case 'act':
      case 'apply':
        return { ...owed, acting: [...owed.acting, event.id] }
      case 'gate.open':
        return { ...owed, gates: [...owed.gates, event.id] }
      case 'tool.done':
      case 'tool.changed':
      case 'deny':
      case 'drop':
      case 'approval.decision':
        return { ...owed, acting: without(owed.acting, event.id), gates: without(owed.gates, event.id) }
      default:
        return owed
    }
  },
  atQuiescence: (owed, rest) => owed.started && !owed.over && !isAwaited(owed, rest),
}

const without = (ids: readonly string[], id: string) => (ids.includes(id) ? ids.filter((each) => each !== id) : ids)

const isOwed = ({ thinking, judging, checking, acting, gates, stopped }: Owed) =>
  thinking || judging !== null || checking !== null || acting.length > 0 || (!stopped && gates.length > 0)

/** Some answer is outstanding, and the program accepts it. A stopped run asks nobody any more, so open gates do not count. */
function isAwaited(owed: Owed, { offers }: Rest<RunEvent>): boolean {
  if (!isOwed(owed)) return false
  const { thinking, judging, checking, acting, gates, stopped } = owed
  const takes = (type: RunEvent['type'], id?: string) =>
    offers.some((offer) => offer.type === type && (id === undefined || ('id' in offer && offer.id === id)))
  const thought = !thinking || (takes('model.done') && takes('model.fail'))
  const judged = (judging === null || takes('judged', judging)) && (checking === null || takes('check.done', checking))
  return (
    thought && judged && acting.every((id) => takes('tool.done', id)) && (stopped || gates.every((id) => takes('approval.decision', id)))
  )
}
