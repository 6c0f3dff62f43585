/** The semantics of one step as pure functions over plain arrays: the model checker runs these, and the engine is tested equal to them. */

import type { Json } from '../kit/json.ts'
import type { AnyThread, Bid, KernelEvent, Pattern } from './thread.ts'

/** One event that happened. `source` is the thread whose request it was, or `external`; `advanced` names every thread that moved, in order. */
export type Selection<E extends KernelEvent> = { readonly event: E; readonly source: string; readonly advanced: readonly string[] }

/** An external event that could not happen: the thread `by` blocks it. It has no consequences and is not kept. */
export type Rejection<E extends KernelEvent> = { readonly event: E; readonly by: string }

/** A request that cannot happen now, and every thread that blocks it. */
export type BlockedRequest<E extends KernelEvent> = { readonly thread: string; readonly event: E; readonly by: readonly string[] }

/** A request and the place of its thread in the program. */
export type Candidate<E extends KernelEvent> = { readonly event: E; readonly thread: number }

/** What happens next; thread numbers are places in the program. */
export type Choice<E extends KernelEvent> =
  | { readonly type: 'internal'; readonly event: E; readonly thread: number }
  | { readonly type: 'external'; readonly event: E }
  | { readonly type: 'rejected'; readonly event: E; readonly by: number }
  | { readonly type: 'quiescent' }

/** The word that stands for the world in `Selection.source`; no thread may bear it. */
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
 * Does this event advance a thread with this bid? A request counts when type and id are the same, whatever else the events carry:
 * two threads that ask for `deny#1` with different reasons are both content with the one that happens.
 */
export function advances<E extends KernelEvent>(bid: Bid<E>, event: E): boolean {
  if (bid.request !== undefined) {
    for (const request of bid.request) if (request.type === event.type && request.id === event.id) return true
  }
  return matches(bid.wait, event) || matches(bid.interrupt, event)
}

/** The bids of a program in these states. Threads, states and bids run in parallel, in the order `arrange` gives. */
export function bidsOf<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly unknown[]): Bid<E>[] {
  return threads.map((thread, place) => thread.bid(states[place]))
}

export function blockersOf<E extends KernelEvent>(bids: readonly Bid<E>[], event: E): number[] {
  return bids.flatMap((bid, place) => (matches(bid.block, event) ? [place] : []))
}

/** Every request that nobody blocks, in the order in which they are asked. */
export function frontier<E extends KernelEvent>(bids: readonly Bid<E>[]): Candidate<E>[] {
  return requestsOf(bids).filter(({ event }) => blockersOf(bids, event).length === 0)
}

/** What happens next, given the oldest event of the inbox, if there is one. External events wait until nothing internal can happen. */
export function select<E extends KernelEvent>(bids: readonly Bid<E>[], external?: E): Choice<E> {
  const [first] = frontier(bids)
  if (first !== undefined) return { type: 'internal', ...first }
  if (external === undefined) return { type: 'quiescent' }
  const [by] = blockersOf(bids, external)
  return by === undefined ? { type: 'external', event: external } : { type: 'rejected', event: external, by }
}

/** The states after the event, and the places of the threads that moved. Threads that did not move keep the very same state. */
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

/** Who is stranded, and by whom. */
export function explainBids<E extends KernelEvent>(threads: readonly AnyThread<E>[], bids: readonly Bid<E>[]): BlockedRequest<E>[] {
  return requestsOf(bids).flatMap(({ event, thread }) => {
    const by = blockersOf(bids, event)
    return by.length === 0 ? [] : [{ thread: nameOf(threads, thread), event, by: by.map((place) => nameOf(threads, place)) }]
  })
}

export function nameOf(threads: readonly { readonly name: string }[], place: number): string {
  return threads[place]?.name ?? `thread ${place}`
}

/** How an event is called in messages: `act#call_1`. */
export function label(event: KernelEvent): string {
  return event.id === undefined ? event.type : `${event.type}#${event.id}`
}

function requestsOf<E extends KernelEvent>(bids: readonly Bid<E>[]): Candidate<E>[] {
  return bids.flatMap((bid, thread) => (bid.request ?? []).map((event) => ({ event, thread })))
}
