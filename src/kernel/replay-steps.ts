/** Replays a program from its journal: the external events alone determine everything else. */

import { canonical } from '../kit/json.ts'
import { createEngine, type StepResult } from './engine.ts'
import type { Selection } from './select.ts'
import type { AnyThread, KernelEvent } from './thread.ts'

/**
 * Feeds the external events one by one, each after all consequences of the previous one, as the engine did. With the same threads nothing
 * is rejected and `selected` equals the original run; with other threads both may differ.
 * @throws LivelockError, and whatever a thread throws.
 */
export function replay<E extends KernelEvent>(given: {
  readonly threads: readonly AnyThread<E>[]
  readonly externals: readonly E[]
  readonly maxSelections?: number
}): StepResult<E> {
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

/** The parts of a selection that the comparison uses: the event and the thread that requested it. */
type Happened<E extends KernelEvent> = Pick<Selection<E>, 'event' | 'source'>

/** The first position where two runs differ; a side is absent if that run had already ended. `at` counts from 0. */
export type Divergence<E extends KernelEvent> = { readonly at: number; readonly before?: Happened<E>; readonly after?: Happened<E> }

/**
 * Compares events by canonical JSON and by source, and ignores which other threads advanced: a rule that only observes changes nothing.
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
