/** Defines the terms of behavioural programming: b-threads, bids, patterns and events. */

/** Every event has a type; `id` distinguishes events of the same type (`act#call_1`). All of it is plain JSON. */
export type KernelEvent = { readonly type: string; readonly id?: string }

/** Matches events of this type, of this id if given, and for which `match` returns true. `match` must be pure. */
export type Pattern<E extends KernelEvent> = { readonly type: E['type']; readonly id?: string; readonly match?: (event: E) => boolean }

/**
 * The bid of a thread in its current state. `block` overrides every request, from any thread. `interrupt` advances the thread as `wait`
 * does; it only tells a reader that the thread abandons its plan.
 */
export type Bid<E extends KernelEvent> = {
  readonly request?: readonly E[]
  readonly wait?: readonly Pattern<E>[]
  readonly block?: readonly Pattern<E>[]
  readonly interrupt?: readonly Pattern<E>[]
}

/**
 * A b-thread: a reducer over plain JSON state. `bid` and `next` must be pure and must not mutate the state, so that the program can hash,
 * clone, journal, replay and model-check it. The engine asks threads in order of `priority`, lowest first, then in order of registration.
 * It calls `next` only for an event that the thread requested, waited for, or is interrupted by.
 */
export type BThread<S, E extends KernelEvent> = {
  readonly name: string
  readonly priority: number
  readonly init: S
  bid(state: S): Bid<E>
  next(state: S, event: E): S
}

/** Threads with different state types in one program. */
// biome-ignore lint/suspicious/noExplicitAny: the one place where state types differ within a list
export type AnyThread<E extends KernelEvent> = BThread<any, E>
