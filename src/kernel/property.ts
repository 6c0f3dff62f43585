/** Defines what the model checker proves: a monitor that observes the selections and reports a violation. */

import type { States } from './check-program.ts'
import type { BlockedRequest, Selection } from './select.ts'
import type { KernelEvent } from './thread.ts'

/** The program at rest: no internal event is enabled. */
export type Rest<E extends KernelEvent> = {
  readonly states: States
  /** The requests that remain, with the threads that block them. */
  readonly blocked: readonly BlockedRequest<E>[]
  /** The events that the environment may send now and the program would accept. If empty, nothing can ever happen again. */
  readonly offers: readonly E[]
}

/**
 * A property as a small reducer. `M` is plain JSON and part of the visited key: keep it small and bounded, without uncapped counters.
 * `violated` and `atQuiescence` return true when the property is broken. The checker calls `violated` before the first event and after
 * every event, and `atQuiescence` whenever the program is at rest. All functions must be pure.
 */
export type Property<E extends KernelEvent, M = unknown> = {
  readonly name: string
  readonly init: M
  next(monitor: M, selection: Selection<E>): M
  violated?(monitor: M): boolean
  atQuiescence?(monitor: M, rest: Rest<E>): boolean
}
