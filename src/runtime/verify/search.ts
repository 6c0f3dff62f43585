/** Model-checks one scene: explores it completely, then samples random runs for replays. */

import { type Exploration, explore } from '../../kernel/explore.ts'
import type { Property } from '../../kernel/property.ts'
import { EXTERNAL, type Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { answersLate } from './answers.ts'
import { createUnifier, memoizeStep, memoizeThread } from './memoize.ts'
import { P9, propertiesOf } from './properties.ts'
import type { Scene } from './scenes.ts'
import { findReplayMismatch } from './walks.ts'
import { createWorld, memory, type Seen } from './world.ts'

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
  const found = explore<RunEvent, Seen>({
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
