/** The standing bids, indexed by event type, so that a thread nobody speaks to costs nothing. */

import { advances, type BlockedRequest, matches } from './select.ts'
import type { AnyThread, Bid, KernelEvent, Pattern } from './thread.ts'

/** A thread at the table. The engine fills `next*` for every thread that moves before any of them is made true. */
export type Seat<E extends KernelEvent> = {
  readonly place: number
  readonly name: string
  readonly thread: AnyThread<E>
  state: unknown
  bid: Bid<E>
  nextState: unknown
  nextBid: Bid<E>
  /** The request that `enabled` found last. */
  offer: E | undefined
}

export type Board<E extends KernelEvent> = {
  readonly seats: readonly Seat<E>[]
  /** The first seat, in order of place, with a request that nobody blocks; its `offer` is that request. */
  enabled(): Seat<E> | undefined
  /** The first seat that blocks the event. */
  blocker(event: E): Seat<E> | undefined
  /** Writes the seats that the event advances to the front of `into`, in order of place, and returns how many they are. */
  collect(event: E, into: Seat<E>[]): number
  place(seat: Seat<E>, bid: Bid<E>): void
  explain(): BlockedRequest<E>[]
}

/** Requests or patterns: all that the index looks at is the type. */
type Named = readonly { readonly type: string }[]

type Entry<E extends KernelEvent> = { readonly listeners: Seat<E>[]; readonly blockers: Seat<E>[] }

/**
 * A seat enters a list when it bids and leaves it only when so many were looked at in vain: threads go in circles and soon bid for
 * the same types again, so that in a steady program the lists hardly ever change.
 */
const PATIENCE = 16

export function createBoard<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly unknown[]): Board<E> {
  const entries = new Map<string, Entry<E>>()
  const requesters: Seat<E>[] = []
  const seats = threads.map((thread, place) => seatOf({ thread, place, state: states[place] }))

  function entry(type: string): Entry<E> {
    const known = entries.get(type)
    if (known !== undefined) return known
    const fresh = { listeners: [], blockers: [] }
    entries.set(type, fresh)
    return fresh
  }

  // Only what is new is entered: where the old bid named the same type at the same place of its list, the seat is in the index already.
  function listen(seat: Seat<E>, events: Named | undefined, before: Named | undefined): void {
    if (events === undefined || events === before) return
    let at = 0
    for (const { type } of events) if (before?.[at++]?.type !== type) enlist(entry(type).listeners, seat)
  }

  function place(seat: Seat<E>, bid: Bid<E>): void {
    const old = seat.bid
    if (bid === old) return
    seat.bid = bid
    if (asks(bid) && !asks(old)) enlist(requesters, seat)
    listen(seat, bid.request, old.request)
    listen(seat, bid.wait, old.wait)
    listen(seat, bid.interrupt, old.interrupt)
    if (bid.block === undefined || bid.block === old.block) return
    let at = 0
    for (const { type } of bid.block) if (old.block?.[at++]?.type !== type) enlist(entry(type).blockers, seat)
  }

  function blocker(event: E): Seat<E> | undefined {
    const blockers = entries.get(event.type)?.blockers
    if (blockers === undefined) return undefined
    for (const seat of blockers) if (matches(seat.bid.block, event)) return seat
    if (blockers.length > PATIENCE) sweep(blockers, ({ bid }) => names(bid.block, event.type))
    return undefined
  }

  function unblocked(requests: readonly E[]): E | undefined {
    for (const event of requests) if (blocker(event) === undefined) return event
    return undefined
  }

  function enabled(): Seat<E> | undefined {
    let idle = 0
    let found: Seat<E> | undefined
    for (const seat of requesters) {
      const requests = seat.bid.request
      if (requests === undefined || requests.length === 0) {
        idle += 1
        continue
      }
      seat.offer = unblocked(requests)
      if (seat.offer === undefined) continue
      found = seat
      break
    }
    if (idle > PATIENCE) sweep(requesters, ({ bid }) => asks(bid))
    return found
  }

  function collect(event: E, into: Seat<E>[]): number {
    const listeners = entries.get(event.type)?.listeners
    if (listeners === undefined) return 0
    let count = 0
    for (const seat of listeners) if (advances(seat.bid, event)) into[count++] = seat
    if (listeners.length - count > PATIENCE) sweep(listeners, ({ bid }) => hears(bid, event.type))
    return count
  }

  function explain(): BlockedRequest<E>[] {
    return requesters.flatMap(({ name, bid }) =>
      (bid.request ?? []).flatMap((event) => {
        const by = entries.get(event.type)?.blockers.filter((other) => matches(other.bid.block, event)) ?? []
        return by.length === 0 ? [] : [{ thread: name, event, by: by.map((other) => other.name) }]
      }),
    )
  }

  for (const seat of seats) place(seat, seat.thread.bid(seat.state))
  return { seats, enabled, blocker, collect, place, explain }
}

function seatOf<E extends KernelEvent>(given: { readonly thread: AnyThread<E>; readonly place: number; readonly state: unknown }): Seat<E> {
  const silent: Bid<E> = {}
  return { ...given, name: given.thread.name, bid: silent, nextState: given.state, nextBid: silent, offer: undefined }
}

function asks<E extends KernelEvent>(bid: Bid<E>): boolean {
  return bid.request !== undefined && bid.request.length > 0
}

function hears<E extends KernelEvent>(bid: Bid<E>, type: string): boolean {
  return bid.request?.some((event) => event.type === type) || names(bid.wait, type) || names(bid.interrupt, type)
}

function names<E extends KernelEvent>(patterns: readonly Pattern<E>[] | undefined, type: string): boolean {
  return patterns?.some((pattern) => pattern.type === type) ?? false
}

/** Puts the seat where its place says, once. */
function enlist<E extends KernelEvent>(list: Seat<E>[], seat: Seat<E>): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = list[middle]
    if (other === seat) return
    if (other !== undefined && other.place < seat.place) low = middle + 1
    else high = middle
  }
  if (low === list.length) list.push(seat)
  else list.splice(low, 0, seat)
}

function sweep<E extends KernelEvent>(list: Seat<E>[], keep: (seat: Seat<E>) => boolean): void {
  let kept = 0
  for (const seat of list) if (keep(seat)) list[kept++] = seat
  list.length = kept
}
