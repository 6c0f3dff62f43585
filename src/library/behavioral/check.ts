/** Explores what a behavioral program can do, without its handlers: forbidden events, livelocks, what comes next. */

import { initialStates, plain, type States } from '../../kernel/check-program.ts'
import { explore, LIVELOCK } from '../../kernel/explore.ts'
import { advance, bidsOf, explainBids, matches, frontier as open, type Selection } from '../../kernel/select.ts'
import type { Bid, BThread as KernelThread, Pattern } from '../../kernel/thread.ts'
import type { Json } from '../../kit/json.ts'
import { didYouMean } from '../../kit/text.ts'
import type { BPEvent, BPListener, BPListeners, Idioms, ProgramEvent, Repeat, RulesFunction } from './b-thread.ts'
import { asEvent, bidOf, bSync, bThread, listOf, patternOf } from './b-thread.ts'

/** The steps of a thread for a module that imports nothing. */
export type ThreadSteps = { readonly steps: readonly Idioms[]; readonly repeat?: Repeat; readonly interrupt?: BPListeners }

/**
 * A program for the checker. Its functions must be pure: what they read besides the event is taken as it is when the check begins. Events are
 * types, or samples with a detail where threads look at it.
 */
export type Program = {
  /** In the order of their priority. */
  readonly threads: { readonly [name: string]: RulesFunction | ThreadSteps }
  readonly publicEvents?: readonly (string | BPEvent)[]
  /** Events of handlers; default: every type that a thread waits for, and that is neither public nor requested. */
  readonly events?: readonly (string | BPEvent)[]
  /** These events must not happen. */
  readonly never?: BPListeners
}

/** `by`: the thread that requested the event, `outside` for a public one, or `handlers`. */
export type ProgramStep = { readonly type: string; readonly detail?: Json; readonly by: string }

/** `holds` is null when the search ended before it had seen every state. `steps`: a shortest run that breaks the property. */
export type ProgramFinding = { readonly property: string; readonly holds: boolean | null; readonly steps?: readonly ProgramStep[] }
export type ProgramReport = { readonly ok: boolean; readonly states: number; readonly findings: readonly ProgramFinding[] }

/** `blocked.by`: the threads that block the event. */
export type Frontier = {
  readonly enabled: readonly ProgramStep[]
  readonly blocked: readonly { readonly type: string; readonly by: readonly string[] }[]
}

/** The state is the number of the step, or ENDED. */
type StepThread = KernelThread<number, ProgramEvent> & { readonly bids: readonly Bid<ProgramEvent>[] }
type Model = { readonly threads: readonly StepThread[]; readonly world: readonly ProgramEvent[]; readonly types: readonly string[] }

const ENDED = -1
const MOST_STEPS = 1000

/** Threads begin with the first trigger, whatever its type: here their requests wait for an event of the world, or for BEGIN. */
const beginning: StepThread = {
  name: 'the first event',
  priority: -1,
  init: 0,
  bids: [],
  bid: (step) =>
    step === 0 ? { wait: [{ type: 'event', match: isWorld }, { type: 'begin' }], block: [{ type: 'event', match: isRequest }] } : {},
  next: () => ENDED,
}
const BEGIN: ProgramEvent = { type: 'begin', id: 'begin', by: 'outside' }
const WORLD = ['outside', 'handlers']
const isWorld = ({ by = '' }: ProgramEvent): boolean => WORLD.includes(by)
const isRequest = (event: ProgramEvent): boolean => !isWorld(event)

/** @throws TypeError that says what is wrong with the program */
function modelOf(program: Program): Model {
  const members = ['threads', 'publicEvents', 'events', 'never']
  const wrong = Object.keys(program).find((key) => !members.includes(key))
  if (wrong !== undefined)
    throw new TypeError(`the program has "${wrong}"; a program has ${members.join(', ')}${didYouMean(wrong, members)}`)
  const threads = [beginning, ...Object.entries(program.threads).map(([name, thread], at) => stepThread(name, thread, at))]
  const bids = threads.flatMap((thread) => thread.bids)
  const heard = bids.flatMap(({ wait = [], interrupt = [] }) => typesOf([...wait, ...interrupt]))
  const outside = (program.publicEvents ?? []).map((event) => sample(event, 'publicEvents', 'outside'))
  const known = new Set([...outside, ...bids.flatMap(({ request = [] }) => request)].map(({ id }) => id))
  const others = program.events ?? [...new Set(heard)].filter((type) => !known.has(type))
  const world = [...outside, ...others.map((event) => sample(event, 'events', 'handlers'))]
  return { threads, world, types: [...new Set([...known, ...world.map(({ id }) => id), ...heard])] }
}

function typesOf(patterns: readonly Pattern<ProgramEvent>[]): string[] {
  return patterns.flatMap(({ id }) => id ?? [])
}

function sample(given: string | BPEvent, where: string, by: string): ProgramEvent {
  const event = asEvent(typeof given === 'string' ? { type: given } : given, where, by)
  return event.detail === undefined ? event : { ...event, detail: plain(event.detail, `${where}: "${event.id}": detail`) }
}

function rulesOf(given: RulesFunction | ThreadSteps): RulesFunction {
  if (typeof given === 'function') return given
  const steps = listOf(given.steps).map((step) => bSync(step))
  return bThread(steps, given.repeat, given)
}

function stepThread(name: string, given: RulesFunction | ThreadSteps, priority: number): StepThread {
  if (WORLD.includes(name)) throw new TypeError(`a thread is called "${name}", which stands for the world; rename it`)
  const rules = rulesOf(given)
  const { prefix, loop } = rules.shape?.() ?? { prefix: Number.NaN, loop: 0 }
  const total = prefix + loop
  if (Number.isNaN(total)) throw new TypeError(`thread "${name}" is a generator function, whose end is not known; build it with bThread`)
  if (total > MOST_STEPS) throw new TypeError(`thread "${name}" has ${total} steps, and ${MOST_STEPS} can be checked; use fewer rounds`)
  const steps: Idioms[] = []
  if (total > 0) for (const step of rules()) if (steps.push(step) === total) break
  const bids = steps.map((step) => {
    const { template, request = [], ...bid } = bidOf(name, step)
    const requests = template ? [template()] : request
    return { ...bid, request: requests.map(({ id, detail }) => sample({ type: id, detail }, `thread "${name}": request`, name)) }
  })
  return {
    name,
    priority,
    bids,
    init: total > 0 ? 0 : ENDED,
    bid: (step) => bids[step] ?? {},
    next(step, event) {
      const { wait, interrupt } = bids[step] ?? {}
      if (matches(interrupt, event)) return ENDED
      // A template moves with its own event alone, whatever others request.
      if (typeof steps[step]?.request === 'function' && event.by !== name && !matches(wait, event)) return step
      return step + 1 < total ? step + 1 : loop > 0 ? prefix : ENDED
    },
  }
}

function stepOf({ id: type, detail, by = '' }: ProgramEvent): ProgramStep {
  return detail === undefined ? { type, by } : { type, detail: plain(detail, type), by }
}

function worldAt({ world }: Model, first: unknown): readonly ProgramEvent[] {
  return first === 0 ? [...world, BEGIN] : world
}

/** Explores all runs that the world can provoke. @throws TypeError that says what is wrong with the program */
export function verify(program: Program, { maxStates = 100_000 }: { readonly maxStates?: number } = {}): ProgramReport {
  const model = modelOf(program)
  const never = listOf(program.never).map((one) => ({ property: `never ${spelledListener(one)}`, patterns: [patternOf(one, 'never')] }))
  for (const type of never.flatMap(({ patterns }) => typesOf(patterns))) checkType(model, type)
  const environment = (states: States) => worldAt(model, states[beginning.name])
  const results = [{ property: LIVELOCK, patterns: [] }, ...never].map(({ property, patterns }) => {
    const next = (seen: boolean, { event }: Selection<ProgramEvent>) => seen || matches(patterns, event)
    const properties = [{ name: property, init: false, next, violated: (seen: unknown) => seen === true }]
    const found = explore({ threads: model.threads, maxStates, environment, history: { init: 0, next: () => 0 }, properties })
    return { property, found }
  })
  const findings = results.map(({ property, found }): ProgramFinding => {
    if (found.outcome !== 'violated') return { property, holds: found.outcome === 'holds' ? true : null }
    // A livelock ends the search for anything else, which is then not decided.
    if (found.property === LIVELOCK && property !== LIVELOCK) return { property, holds: null }
    return { property, holds: false, steps: found.trace.map(({ event }) => stepOf(event)) }
  })
  return { ok: findings.every(({ holds }) => holds), states: Math.max(...results.map(({ found }) => found.states)), findings }
}

/** Returns what can come after these events; requests between them may be left out. @throws TypeError when they cannot come in this order */
export function frontier(program: Program, history: readonly (string | BPEvent)[] = []): Frontier {
  const model = modelOf(program)
  let states: readonly Json[] = initialStates(model.threads)
  for (const event of history) states = after(model, states, sample(event, 'history', ''))
  const { enabled, blocked } = openAt(model, states)
  return { enabled: enabled.map(stepOf), blocked: blocked.map(({ event, by }) => ({ type: event.id, by })) }
}

/** A request comes alone, the one of highest priority; without one, anything that the world may send. */
function openAt(model: Model, states: readonly Json[]) {
  const bids = bidsOf(model.threads, states)
  const withWorld = [...bids, { request: worldAt(model, states[0]) }]
  const all = open(withWorld).map(({ event }) => event)
  const enabled = all[0] && isRequest(all[0]) ? all.slice(0, 1) : all
  return { bids, enabled, blocked: explainBids(model.threads, withWorld) }
}

function after(model: Model, before: readonly Json[], wanted: ProgramEvent): readonly Json[] {
  checkType(model, wanted.id)
  let states = before
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const { bids, enabled, blocked } = openAt(model, states)
    const found = enabled.find(({ id }) => id === wanted.id)
    const event = found ?? enabled.find((one) => isRequest(one) || one === BEGIN)
    if (event === undefined) {
      const by = blocked.find((one) => one.event.id === wanted.id)?.by.join(', ')
      const why = by ? `${by} blocks it` : `what can come is ${enabled.map(({ id }) => id).join(', ') || 'nothing'}`
      throw new TypeError(`"${wanted.id}" cannot come at this point of the history: ${why}`)
    }
    const given = isWorld(event) ? { ...event, detail: wanted.detail ?? event.detail } : event
    states = advance({ threads: model.threads, states, bids, event: given }).states
    if (found) return states
  }
  throw new TypeError(`"${wanted.id}" does not come within ${MOST_STEPS} requests of the program`)
}

function checkType({ types }: Model, type: string): void {
  if (!types.includes(type))
    throw new TypeError(`"${type}" is not an event of this program (${types.join(', ')})${didYouMean(type, types)}`)
}

/** Spells a listener for people: the type, the pattern as JSON, or the start of a function's text. */
function spelledListener(listener: BPListener): string {
  const text = typeof listener === 'string' ? listener : typeof listener === 'function' ? String(listener) : JSON.stringify(listener)
  return text.replace(/\s+/g, ' ').slice(0, 80)
}
