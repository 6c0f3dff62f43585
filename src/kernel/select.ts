/** Defines the semantics of one step as pure functions over arrays. The model checker runs them, and tests compare the engine with them. */

import type { Json } from '../kit/json.ts'
import type { AnyThread, Bid, KernelEvent, Pattern } from './thread.ts'

/** One event that happened. `source` is the thread that requested it, or `external`; `advanced` names every thread that moved, in order. */
export type Selection<E extends KernelEvent> = { readonly event: E; readonly source: string; readonly advanced: readonly string[] }

/** An external event that could not happen because the thread `by` blocks it. It has no consequences and the engine does not keep it. */
export type Rejection<E extends KernelEvent> = { readonly event: E; readonly by: string }

/** A request that cannot happen now, and every thread that blocks it. */
export type BlockedRequest<E extends KernelEvent> = { readonly thread: string; readonly event: E; readonly by: readonly string[] }

/** A request and the position of its thread in the program. */
export type Candidate<E extends KernelEvent> = { readonly event: E; readonly thread: number }

/** The next step of a program. Thread numbers are positions in the program. */
export type Choice<E extends KernelEvent> =
  | { readonly type: 'internal'; readonly event: E; readonly thread: number }
  | { readonly type: 'external'; readonly event: E }
  | { readonly type: 'rejected'; readonly event: E; readonly by: number }
  | { readonly type: 'quiescent' }

/** The value of `Selection.source` for external events; no thread may have this name. */
export const EXTERNAL = 'external'

export function matches<E extends KernelEvent>(patterns: readonly Pattern<E>[] | undefined, event: E): boolean {
  if (patterns === undefined) return false
  for (const pattern of patterns) {
    if (pattern.type !== event.type) continue
    if (pattern.id !== undefined && pattern.id !== event.id) continue
    if (pattern.match === undefined || pattern.match(event)) return true
  }
  return false
}

/**
 * Tells whether this event advances a thread with this bid. A request matches on type and id, whatever other fields the events have: two
 * threads that request `deny#1` with different reasons both advance when one of the two happens.
 */
export function advances<E extends KernelEvent>(bid: Bid<E>, event: E): boolean {
  if (bid.request !== undefined) {
    for (const request of bid.request) if (request.type === event.type && request.id === event.id) return true
  }
  return matches(bid.wait, event) || matches(bid.interrupt, event)
}

/** Returns the bids of a program in these states. Threads, states and bids are parallel arrays, in the order that `arrange` returns. */
export function bidsOf<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly unknown[]): Bid<E>[] {
  return threads.map((thread, place) => thread.bid(states[place]))
}

export function blockersOf<E extends KernelEvent>(bids: readonly Bid<E>[], event: E): number[] {
  return bids.flatMap((bid, place) => (matches(bid.block, event) ? [place] : []))
}

/** Returns every request that no thread blocks, in the order in which the engine asks the threads. */
export function frontier<E extends KernelEvent>(bids: readonly Bid<E>[]): Candidate<E>[] {
  return requestsOf(bids).filter(({ event }) => blockersOf(bids, event).length === 0)
}

/** Returns what happens next, given the oldest event of the inbox, if any. External events wait until no internal event is enabled. */
export function select<E extends KernelEvent>(bids: readonly Bid<E>[], external?: E): Choice<E> {
  const [first] = frontier(bids)
  if (first !== undefined) return { type: 'internal', ...first }
  if (external === undefined) return { type: 'quiescent' }
  const [by] = blockersOf(bids, external)
  return by === undefined ? { type: 'external', event: external } : { type: 'rejected', event: external, by }
}

/** Returns the states after the event, and the positions of the threads that moved. Other threads keep the identical state object. */
export function advance<E extends KernelEvent>(given: {
  readonly threads: readonly AnyThread<E>[]
  readonly states: readonly Json[]
  readonly bids: readonly Bid<E>[]
  readonly event: E
}): { readonly states: readonly Json[]; readonly advanced: readonly number[] } {
  const { threads, bids, event } = given
  const states = [...given.states]
  const advanced: number[] = []
  for (const [place, thread] of threads.entries()) {
    if (!advances(bids[place] ?? {}, event)) continue
    const state: Json = thread.next(given.states[place], event)
    states[place] = state
    advanced.push(place)
  }
  return { states, advanced }
}

/** Returns each request that cannot happen, with the threads that block it. */
export function explainBids<E extends KernelEvent>(threads: readonly AnyThread<E>[], bids: readonly Bid<E>[]): BlockedRequest<E>[] {
  return requestsOf(bids).flatMap(({ event, thread }) => {
    const by = blockersOf(bids, event)
    return by.length === 0 ? [] : [{ thread: nameOf(threads, thread), event, by: by.map((place) => nameOf(threads, place)) }]
  })
}

export function nameOf(threads: readonly { readonly name: string }[], place: number): string {
  return threads[place]?.name ?? `thread ${place}`
}

/** Formats an event for messages: `act#call_1`. */
export function label(event: KernelEvent): string {
  return event.id === undefined ? event.type : `${event.type}#${event.id}`
}

function requestsOf<E extends KernelEvent>(bids: readonly Bid<E>[]): Candidate<E>[] {
  return bids.flatMap((bid, thread) => (bid.request ?? []).map((event) => ({ event, thread })))
}
