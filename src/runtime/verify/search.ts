/** One scene of the model checker: explored to the end, then sampled for replays. */

import { type Exploration, explore } from '../../kernel/explore.ts'
import type { Property } from '../../kernel/property.ts'
import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { P9, propertiesOf } from './properties.ts'
import { recallStep, recallThread } from './recall.ts'
import type { Scene } from './scenes.ts'
import { unlikeItsReplay } from './walks.ts'
import { createWorld, memory, type Seen } from './world.ts'

export type Listeners = {
  /** A thread blocked something in some state. */
  readonly onBlock: (thread: string) => void
  /** An event happened in some run; told of again and again. */
  readonly onEvent: (event: RunEvent) => void
}

export type Searching = Listeners & { readonly scene: Scene; readonly threads: readonly AnyThread<RunEvent>[]; readonly maxStates: number }

export function search({ scene, threads, maxStates, onBlock, onEvent }: Searching): Exploration<RunEvent> {
  const world = createWorld(scene)
  const found = explore<RunEvent, Seen>({
    threads: threads.map((thread) => recallThread(thread, onBlock)),
    environment: (_states, seen) => world(seen),
    history: { init: memory.init, next: byEvent(memory.next, onEvent) },
    properties: propertiesOf(scene.limits).map(({ property }) => recalled(property)),
    maxStates,
  })
  if (found.outcome === 'violated') return found
  const trace = unlikeItsReplay({ threads, world, walks: 100, steps: 40 })
  return trace === undefined ? found : { ...found, outcome: 'violated', property: P9, trace }
}

function recalled(property: Property<RunEvent>): Property<RunEvent> {
  return { ...property, next: byEvent(property.next) }
}

type Next<M> = (monitor: M, selection: Selection<RunEvent>) => M

/** Our monitors look at the event of a selection alone. */
function byEvent<M>(next: Next<M>, onEvent: (event: RunEvent) => void = () => {}): Next<M> {
  const step = recallStep<M>((monitor, event) => {
    onEvent(event)
    return next(monitor, { event, source: '', advanced: [] })
  })
  return (monitor, { event }) => step(monitor, event)
}
