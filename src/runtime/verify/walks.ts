/** Checks P9 by sampling: replays random runs (the same ones every time) from their external events alone and compares the selections. */

import { createEngine } from '../../kernel/engine.ts'
import { divergence, replay } from '../../kernel/replay-steps.ts'
import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { memory, type Seen } from './world.ts'

export type Walking = {
  readonly threads: readonly AnyThread<RunEvent>[]
  readonly world: (seen: Seen) => readonly RunEvent[]
  readonly walks: number
  readonly steps: number
}

/** @returns the run whose replay selected other events, if any. */
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
