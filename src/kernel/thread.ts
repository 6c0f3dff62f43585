/** The words of behavioural programming: what a b-thread is, what it bids, what an event looks like. */

/** Every event has a type; `id` names one of several alike (`act#call_1`). All of it is plain JSON. */
export type KernelEvent = { readonly type: string; readonly id?: string }

/** Which events are meant: of this type, of this id if given, and for which `match` holds. `match` must be pure. */
export type Pattern<E extends KernelEvent> = {
  readonly type: E['type']
  readonly id?: string
  readonly match?: (event: E) => boolean
}

/**
 * What a thread asks for at this moment. `block` wins over every request, whoever asks.
 * `interrupt` advances the thread as `wait` does; the word only tells a reader that its plan is dropped.
 */
export type Bid<E extends KernelEvent> = {
  readonly request?: readonly E[]
  readonly wait?: readonly Pattern<E>[]
  readonly block?: readonly Pattern<E>[]
  readonly interrupt?: readonly Pattern<E>[]
}

/**
 * A b-thread: a reducer over plain JSON state. `bid` and `next` must be pure and must not mutate the state, so that it can be hashed,
 * cloned, journalled, replayed and model-checked. Lower `priority` is asked first; among equals the order of registration decides.
 * `next` is called only for an event the thread requested, waited for, or is interrupted by.
 */
export type BThread<S, E extends KernelEvent> = {
  readonly name: string
  readonly priority: number
  readonly init: S
  bid(state: S): Bid<E>
  next(state: S, event: E): S
}

/** Threads of any state type side by side in one program. */
// biome-ignore lint/suspicious/noExplicitAny: the one place where state types differ within a list
export type AnyThread<E extends KernelEvent> = BThread<any, E>
