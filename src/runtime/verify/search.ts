/** Model-checks one scene: explores it completely, then samples random runs for replays. */

import { createEngine } from '../../kernel/engine.ts'
import { type Exploration, explore, type Property } from '../../kernel/explore.ts'
import { divergence, replay } from '../../kernel/replay-steps.ts'
import { EXTERNAL, type Selection } from '../../kernel/select.ts'
import type { AnyThread, Bid } from '../../kernel/thread.ts'
import { attempt } from '../../kit/errors.ts'
import { canonical } from '../../kit/json.ts'
import type { RunEvent } from '../event.ts'
import { answersLate, P9, propertiesOf } from './properties.ts'
import type { Scene } from './scenes.ts'
import { createWorld, memory, type WorldView } from './world.ts'

export type Listeners = {
  /** A thread blocked something in some state. */
  readonly onBlock: (thread: string) => void
  /** An event happened in some run; called repeatedly for the same event. */
  readonly onEvent: (event: RunEvent) => void
  /** A run answered after more than one round of calls. */
  readonly onLateAnswer: () => void
}

export type Searching = Listeners & { readonly scene: Scene; readonly threads: readonly AnyThread<RunEvent>[]; readonly maxStates: number }

export function search({ scene, threads, maxStates, onBlock, onEvent, onLateAnswer }: Searching): Exploration<RunEvent> {
  const world = createWorld(scene)
  const found = explore<RunEvent, WorldView>({
    threads: threads.map((thread) => memoizeThread(thread, onBlock)),
    environment: (_states, seen) => world(seen),
    history: { init: memory.init, next: bySelection(memory.next, onEvent) },
    properties: [...propertiesOf(scene.limits).map(({ property }) => property), answersLate(onLateAnswer)].map(recalled),
    maxStates,
  })
  if (found.outcome === 'violated') return found
  const trace = findReplayMismatch({ threads, world, walks: 100, steps: 40 })
  return trace === undefined ? found : { ...found, outcome: 'violated', property: P9, trace }
}

function recalled(property: Property<RunEvent>): Property<RunEvent> {
  return { ...property, next: bySelection(property.next) }
}

type Next<M> = (monitor: M, selection: Selection<RunEvent>) => M

/** Our monitors read the event of a selection, and whether it came from outside. */
function bySelection<M>(next: Next<M>, onEvent: (event: RunEvent) => void = () => {}): Next<M> {
  const one = createUnifier()
  const from = (source: string) =>
    memoizeStep<M>((monitor, event) => {
      onEvent(event)
      return next(monitor, { event, source, advanced: [] })
    }, one)
  const [outside, inside] = [from(EXTERNAL), from('a thread')]
  return (monitor, { event, source }) => (source === EXTERNAL ? outside : inside)(monitor, event)
}

type ThreadStep = (state: unknown, event: RunEvent) => unknown

/**
 * Wraps a thread with a cache. Equal states become one object, so that values derived from them recur by reference. It calls `onBlock` for
 * each state in which the thread blocks something. The cache hides an impure thread; `findReplayMismatch` reveals it.
 */
function memoizeThread(thread: AnyThread<RunEvent>, onBlock: (name: string) => void = () => {}): AnyThread<RunEvent> {
  const bids = new Map<unknown, Bid<RunEvent>>()
  return {
    name: thread.name,
    priority: thread.priority,
    init: thread.init,
    bid(state) {
      const known = bids.get(state)
      if (known !== undefined) return known
      const bid = thread.bid(state)
      bids.set(state, bid)
      if (bid.block !== undefined && bid.block.length > 0) onBlock(thread.name)
      return bid
    },
    next: memoizeStep((state, event) => thread.next(state, event)),
  }
}

/** `step` must be pure and return plain JSON. States and events are keys by reference. Steps that share a unifier share their states. */
function memoizeStep<S>(step: (state: S, event: RunEvent) => S, one?: Unifier): (state: S, event: RunEvent) => S
function memoizeStep(step: ThreadStep, one = createUnifier()): ThreadStep {
  const answers = new Map<unknown, Map<RunEvent, unknown>>()
  return (state, event) => {
    const known = answers.get(state) ?? new Map<RunEvent, unknown>()
    answers.set(state, known)
    if (!known.has(event)) known.set(event, one(step(state, event)))
    return known.get(event)
  }
}

type Unifier = (value: unknown) => unknown

/** Returns the first of all equal values. It returns a value without canonical text unchanged: the checker itself reports the problem. */
function createUnifier(): Unifier {
  const byText = new Map<string, unknown>()
  return (value) => {
    const text = textOf(value)
    if (text === undefined) return value
    if (!byText.has(text)) byText.set(text, value)
    return byText.get(text)
  }
}

function textOf(value: unknown): string | undefined {
  return attempt(() => canonical(value))
}

type Walking = {
  readonly threads: readonly AnyThread<RunEvent>[]
  readonly world: (seen: WorldView) => readonly RunEvent[]
  readonly walks: number
  readonly steps: number
}

/**
 * Checks P9 by sampling: replays random runs (the same ones every time) from their external events alone and compares the selections.
 * @returns the run whose replay selected other events, if any.
 */
export function findReplayMismatch({ threads, world, walks, steps }: Walking): readonly Selection<RunEvent>[] | undefined {
  const dice = createDice()
  for (let walk = 0; walk < walks; walk++) {
    const { selected, externals } = wander({ threads, world, steps, dice })
    if (divergence(selected, replay({ threads, externals }).selected) !== undefined) return selected
  }
  return undefined
}

function wander({ threads, world, steps, dice }: Omit<Walking, 'walks'> & { readonly dice: (sides: number) => number }) {
  const externals: RunEvent[] = []
  const engine = createEngine<RunEvent>({ threads, onExternal: (event) => externals.push(event) })
  const selected: Selection<RunEvent>[] = [...engine.superstep().selected]
  let seen = selected.reduce(memory.next, memory.init)
  for (let step = 0; step < steps; step++) {
    const offers = likely(world(seen), dice(10))
    const event = offers[dice(offers.length)]
    if (event === undefined || selected.at(-1)?.event.type === 'finish') break
    engine.send(event)
    const { selected: more } = engine.superstep()
    selected.push(...more)
    seen = more.reduce(memory.next, seen)
  }
  return { selected, externals }
}

/** Offers the events that end a run in only one of ten rolls; otherwise most walks would end early. */
export function likely(offers: readonly RunEvent[], roll: number): readonly RunEvent[] {
  return roll === 0 ? offers : offers.filter(({ type }) => !['cancel', 'estop', 'clock', 'model.fail'].includes(type))
}

/** Generates pseudo-random numbers that are the same in every run of the checker (Lehmer, modulus 2^31 − 1). */
function createDice(): (sides: number) => number {
  let state = 20_011
  return (sides) => {
    state = (state * 48_271) % 2_147_483_647
    return state % sides
  }
}
