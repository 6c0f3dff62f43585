/** Indexes the current bids by event type and id, so that an idle thread or a request that stays blocked costs nothing per event. */

import { advances, type BlockedRequest, matches } from './select.ts'
import { createSlotIndex, insertInOrder, type Key, keepThose, PATIENCE, type SlotIndex } from './slot-index.ts'
import type { AnyThread, Bid, KernelEvent } from './thread.ts'

/** One thread of the program with its state and bid. The engine fills `next*` for every thread that moves before it applies any of them. */
export type ThreadSlot<E extends KernelEvent> = {
  readonly place: number
  readonly name: string
  readonly thread: AnyThread<E>
  state: unknown
  bid: Bid<E>
  nextState: unknown
  nextBid: Bid<E>
  /** The unblocked request that the last `enabled` call found. */
  candidate: E | undefined
}

export type BidIndex<E extends KernelEvent> = {
  readonly slots: readonly ThreadSlot<E>[]
  /** Returns the first slot, in program order, that has an unblocked request; its `candidate` is that request. */
  enabled(): ThreadSlot<E> | undefined
  /** Returns the first slot that blocks the event. */
  blocker(event: E): ThreadSlot<E> | undefined
  /** Writes the slots that the event advances to the front of `into`, in program order. @returns how many there are */
  collect(event: E, into: ThreadSlot<E>[]): number
  place(slot: ThreadSlot<E>, bid: Bid<E>): void
  explain(): BlockedRequest<E>[]
}

export function createBidIndex<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly unknown[]): BidIndex<E> {
  // A slot enters an index when it bids. The index removes it only after useless lookups: threads run in cycles and soon bid for the same
  // events again, so in a steady program the indexes hardly ever change.
  const listeners = createSlotIndex<ThreadSlot<E>>(
    ({ bid }, key) => names(bid.request, key) || names(bid.wait, key) || names(bid.interrupt, key),
  )
  const blockers = createSlotIndex<ThreadSlot<E>>(({ bid }, key) => names(bid.block, key))
  /** Slots whose requests are all blocked. The index skips them until their bid or one of the blocks changes. */
  const stuck = new Set<ThreadSlot<E>>()
  /** The stuck slots, each under the patterns that block its requests. */
  const stuckBy = createSlotIndex<ThreadSlot<E>>((slot) => stuck.has(slot))
  /** The slots that have requests and are not stuck, in program order. */
  const requesters: ThreadSlot<E>[] = []
  const slots = threads.map((thread, place) => createSlot({ thread, place, state: states[place] }))

  function place(slot: ThreadSlot<E>, bid: Bid<E>): void {
    const old = slot.bid
    if (bid === old) return
    slot.bid = bid
    if (bid.request !== old.request) {
      enter(listeners, slot, added(bid.request, old.request))
      ask(slot, old)
    }
    if (bid.wait !== old.wait) enter(listeners, slot, added(bid.wait, old.wait))
    if (bid.interrupt !== old.interrupt) enter(listeners, slot, added(bid.interrupt, old.interrupt))
    if (bid.block === old.block) return
    enter(blockers, slot, added(bid.block, old.block))
    if (stuck.size > 0) release(added(old.block, bid.block))
  }

  function ask(slot: ThreadSlot<E>, old: Bid<E>): void {
    const wasStuck = stuck.size > 0 && stuck.delete(slot)
    if (asks(slot.bid) && (wasStuck || !asks(old))) insertInOrder(requesters, slot)
  }

  /**
   * Makes the slots that these removed patterns blocked eligible again. Another pattern may still block them; the next lookup finds that
   * out.
   */
  function release(patterns: readonly Key[] | undefined): void {
    if (patterns === undefined) return
    for (const pattern of patterns) for (const slot of stuckBy.take(pattern)) if (stuck.delete(slot)) insertInOrder(requesters, slot)
  }

  function blocker(event: E): ThreadSlot<E> | undefined {
    const candidates = blockers.find(event)
    if (candidates === undefined) return undefined
    for (const slot of candidates) if (matches(slot.bid.block, event)) return slot
    if (candidates.length > PATIENCE) blockers.sweep(event)
    return undefined
  }

  function unblocked(requests: readonly E[]): E | undefined {
    for (const event of requests) if (blocker(event) === undefined) return event
    return undefined
  }

  function setAside(slot: ThreadSlot<E>, requests: readonly E[]): void {
    stuck.add(slot)
    for (const event of requests) {
      const pattern = blocker(event)?.bid.block?.find((each) => matches([each], event))
      if (pattern !== undefined) stuckBy.add(pattern, slot)
    }
  }

  function enabled(): ThreadSlot<E> | undefined {
    let idle = 0
    let found: ThreadSlot<E> | undefined
    for (const slot of requesters) {
      const requests = slot.bid.request
      if (requests === undefined || requests.length === 0 || stuck.has(slot)) {
        idle += 1
        continue
      }
      slot.candidate = unblocked(requests)
      if (slot.candidate === undefined) {
        setAside(slot, requests)
        idle += 1
        continue
      }
      found = slot
      break
    }
    if (idle > PATIENCE) keepThose(requesters, (slot) => asks(slot.bid) && !stuck.has(slot))
    return found
  }

  function collect(event: E, into: ThreadSlot<E>[]): number {
    const candidates = listeners.find(event)
    if (candidates === undefined) return 0
    let count = 0
    for (const slot of candidates) if (advances(slot.bid, event)) into[count++] = slot
    if (candidates.length - count > PATIENCE) listeners.sweep(event)
    return count
  }

  function explain(): BlockedRequest<E>[] {
    const asking = [...new Set([...requesters, ...stuck])].sort((left, right) => left.place - right.place)
    return asking.flatMap(({ name, bid }) =>
      (bid.request ?? []).flatMap((event) => {
        const by = blockers.find(event)?.filter((other) => matches(other.bid.block, event)) ?? []
        return by.length === 0 ? [] : [{ thread: name, event, by: by.map((other) => other.name) }]
      }),
    )
  }

  for (const slot of slots) place(slot, slot.thread.bid(slot.state))
  return { slots, enabled, blocker, collect, place, explain }
}

function createSlot<E extends KernelEvent>(given: {
  readonly thread: AnyThread<E>
  readonly place: number
  readonly state: unknown
}): ThreadSlot<E> {
  const silent: Bid<E> = {}
  return { ...given, name: given.thread.name, bid: silent, nextState: given.state, nextBid: silent, candidate: undefined }
}

function asks<E extends KernelEvent>(bid: Bid<E>): boolean {
  return bid.request !== undefined && bid.request.length > 0
}

/** A request or a pattern. */
type Term = Key & { readonly match?: unknown }

function names(terms: readonly Term[] | undefined, { type, id }: Key): boolean {
  return terms?.some((term) => term.type === type && term.id === id) ?? false
}

function enter<S>(index: SlotIndex<S>, slot: S, keys: readonly Key[] | undefined): void {
  if (keys === undefined) return
  for (const key of keys) index.add(key, slot)
}

/** Returns the part of `terms` between the first and the last position where it differs from `before`, or undefined if nothing differs. */
function added<T extends Term>(terms: readonly T[] | undefined, before: readonly T[] | undefined): readonly T[] | undefined {
  if (terms === undefined || terms === before) return undefined
  if (before === undefined) return terms
  const shorter = Math.min(terms.length, before.length)
  let from = 0
  while (from < shorter && same(terms[from], before[from])) from += 1
  if (from === terms.length) return undefined
  let end = 0
  while (end < shorter - from && same(terms[terms.length - 1 - end], before[before.length - 1 - end])) end += 1
  return from + end === 0 ? terms : terms.slice(from, terms.length - end)
}

function same(left: Term | undefined, right: Term | undefined): boolean {
  if (left === undefined || right === undefined) return false
  return left.type === right.type && left.id === right.id && left.match === right.match
}
