/** Running a program again from its journal: the external events alone decide everything else. */

import { canonical } from '../kit/json.ts'
import { createEngine, type Step } from './engine.ts'
import type { Selection } from './select.ts'
import type { AnyThread, KernelEvent } from './thread.ts'

/**
 * Feeds the external events one by one, each after all consequences of the one before, as the engine took them in.
 * With the same threads nothing is rejected and `selected` is what happened then; with others both may differ.
 * @throws LivelockError, and whatever a thread throws.
 */
export function replay<E extends KernelEvent>(given: {
  readonly threads: readonly AnyThread<E>[]
  readonly externals: readonly E[]
  readonly maxSelections?: number
}): Step<E> {
  const engine = createEngine({ threads: given.threads, maxSelections: given.maxSelections })
  const steps = [engine.superstep()]
  for (const event of given.externals) {
    engine.send(event)
    steps.push(engine.superstep())
  }
  return {
    selected: steps.flatMap((step) => step.selected),
    rejected: steps.flatMap((step) => step.rejected),
    blocked: steps.at(-1)?.blocked ?? [],
  }
}

/** What a selection is compared by: what happened and whose wish it was. */
type Happened<E extends KernelEvent> = Pick<Selection<E>, 'event' | 'source'>

/** The first place where two runs part; a side is absent where that run had already ended. `at` counts from 0. */
export type Divergence<E extends KernelEvent> = {
  readonly at: number
  readonly before?: Happened<E>
  readonly after?: Happened<E>
}

/**
 * Compares events by their canonical JSON and by their source, not by who else listened: a rule that only looks on changes nothing.
 * @throws TypeError when an event is not JSON.
 */
export function divergence<E extends KernelEvent>(
  before: readonly Happened<E>[],
  after: readonly Happened<E>[],
): Divergence<E> | undefined {
  for (let at = 0; at < Math.max(before.length, after.length); at++) {
    const [left, right] = [before[at], after[at]]
    if (left === undefined || right === undefined || !same(left, right)) return { at, before: left, after: right }
  }
  return undefined
}

function same<E extends KernelEvent>(left: Happened<E>, right: Happened<E>): boolean {
  return left.source === right.source && canonical(left.event) === canonical(right.event)
}
