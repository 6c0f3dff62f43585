/** What a model checker is asked to prove: a monitor that watches the selections and says when something wrong has happened. */

import type { States } from './check-program.ts'
import type { BlockedRequest, Selection } from './select.ts'
import type { KernelEvent } from './thread.ts'

/** The program at rest: nothing internal can happen. */
export type Rest<E extends KernelEvent> = {
  readonly states: States
  /** Requests that remain, and who blocks them. */
  readonly blocked: readonly BlockedRequest<E>[]
  /** What the environment may send now and the program would take: empty means that nothing will ever happen again. */
  readonly offers: readonly E[]
}

/**
 * A property as a small reducer. `M` is plain JSON and part of the visited key: keep it small and bounded, no counters without a cap.
 * `violated` and `atQuiescence` return true when the property is broken; the first is asked after every event and before the first,
 * the second whenever the program is at rest. All must be pure.
 */
export type Property<E extends KernelEvent, M = unknown> = {
  readonly name: string
  readonly init: M
  next(monitor: M, selection: Selection<E>): M
  violated?(monitor: M): boolean
  atQuiescence?(monitor: M, rest: Rest<E>): boolean
}
