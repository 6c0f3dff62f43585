/** Runs a program of b-threads one event at a time and reports what happened, what was rejected and what is stuck. */

import { errorText } from '../kit/errors.ts'
import { createInbox } from '../kit/queue.ts'
import { type BidIndex, createBidIndex, type ThreadSlot } from './bid-index.ts'
import { arrange, checkLimit, initialStates, named, plain, type States, stateOf, unnamed } from './check-program.ts'
import { advances, type BlockedRequest, EXTERNAL, explainBids, label, matches, type Rejection, type Selection } from './select.ts'
import type { AnyThread, Bid, KernelEvent } from './thread.ts'

export type EngineOptions<E extends KernelEvent> = {
  /** The engine asks them by priority; threads of equal priority in this order. */
  readonly threads: readonly AnyThread<E>[]
  /**
   * How many events may follow one another without an external event in between; default 1,000. Beyond it the engine reports a livelock.
   */
  readonly maxSelections?: number
  /**
   * Journals an external event; the engine calls it before any thread sees the event. If it throws, no state changes and the event stays
   * first.
   */
  readonly onExternal?: (event: E) => void
  /** The engine calls it before each event with a snapshot of all bids. Slow; for logs. */
  readonly trace?: (shot: Snapshot<E>) => void
}

/** The result of one super-step. `blocked` holds the requests that remain when nothing more is enabled. */
export type StepResult<E extends KernelEvent> = {
  readonly selected: readonly Selection<E>[]
  readonly rejected: readonly Rejection<E>[]
  readonly blocked: readonly BlockedRequest<E>[]
}

export type Engine<E extends KernelEvent> = {
  /** Adds an external event to the inbox. The engine takes it in the next super-step, or later in the current one. */
  send(event: E): void
  /**
   * Selects events until nothing is enabled and the inbox is empty. With `onSelect` the engine passes each event to the callback after the
   * threads have moved, and leaves `selected` and `blocked` empty to avoid allocations; `explain` then reports what is stuck. If a
   * super-step throws, the next `StepResult` includes the events that were selected before the error, and the engine first takes an
   * external event that was journalled but not yet taken.
   * @throws LivelockError, and whatever a thread, the journal or a callback throws. A thread that throws leaves every state unchanged.
   */
  superstep(onSelect?: (event: E, source: string) => void): StepResult<E>
  explain(): BlockedRequest<E>[]
  /**
   * Adds a thread, or replaces the thread of that name; it starts in its initial state. During a super-step this takes effect before the
   * next selection.
   * @throws as `createEngine` does; then nothing has changed.
   */
  put(thread: AnyThread<E>): void
  /** Returns a copy of all states for storage. It does not include events that are still in the inbox. */
  states(): States
  /** @throws TypeError unless the snapshot has exactly these threads; then nothing has changed. */
  restore(states: States): void
}

/**
 * Reports that a thread threw (`cause`) while the engine checked whether an external event is blocked. No state changed; the event stays
 * first.
 */
export class AdmissionError<E extends KernelEvent> extends Error {
  override readonly name = 'AdmissionError'
  constructor(
    readonly event: E,
    cause: unknown,
  ) {
    super(errorText(cause), { cause })
  }
}

/** How many of the latest events a LivelockError lists. */
const TAIL = 10

/** @throws TypeError if names, priorities or initial states are invalid; RangeError if `maxSelections` is. */
export function createEngine<E extends KernelEvent>(options: EngineOptions<E>): Engine<E> {
  const limit = checkLimit('maxSelections', options.maxSelections ?? 1000)
  let threads = arrange(options.threads)
  let index: BidIndex<E> = createBidIndex(threads, initialStates(threads))
  const inbox = createInbox<E>()
  const moving: ThreadSlot<E>[] = []
  let selected: Selection<E>[] = []
  let rejected: Rejection<E>[] = []
  let recent: { readonly what: string; readonly by: string }[] = []
  /** The external event that is journalled but not yet taken. */
  let admitted: { readonly event: E } | undefined
  let joining: AnyThread<E>[] = []
  let listener: ((event: E, source: string) => void) | undefined
  let running = false

  function superstep(onSelect?: (event: E, source: string) => void): StepResult<E> {
    enter('superstep')
    listener = onSelect
    try {
      run()
    } finally {
      running = false
    }
    const step = { selected, rejected, blocked: onSelect === undefined ? index.explain() : [] }
    selected = []
    rejected = []
    return step
  }

  function run(): void {
    let inner = 0
    if (admitted !== undefined) take(admitted.event, EXTERNAL)
    for (;;) {
      if (joining.length > 0) join()
      const slot = index.enabled()
      if (slot?.candidate !== undefined) {
        inner += 1
        if (inner > limit - TAIL) watch(slot.candidate, slot.name, inner)
        if (options.trace !== undefined) recordTrace(slot.candidate, slot.name)
        take(slot.candidate, slot.name)
        continue
      }
      const event = inbox.first()
      if (event === undefined) return
      admit(event)
      inner = 0
    }
  }

  // The engine journals an event before it removes the event from the inbox.
  function admit(event: E): void {
    const by = blockerOf(event)
    if (by !== undefined) {
      inbox.drop()
      rejected.push({ event, by: by.name })
      return
    }
    if (options.trace !== undefined) recordTrace(event, EXTERNAL)
    options.onExternal?.(event)
    inbox.drop()
    admitted = { event }
    take(event, EXTERNAL)
  }

  function blockerOf(event: E): ThreadSlot<E> | undefined {
    try {
      return index.blocker(event)
    } catch (error) {
      throw new AdmissionError(event, error)
    }
  }

  function take(event: E, source: string): void {
    const count = move(event)
    admitted = undefined
    if (listener !== undefined) listener(event, source)
    else selected.push({ event, source, advanced: namesOf(moving, count) })
  }

  /** First computes the next state of every thread that moves, then applies them all: a thread that throws leaves no partial update. */
  function move(event: E): number {
    const count = index.collect(event, moving)
    for (let at = 0; at < count; at++) {
      const slot = moving[at]
      if (slot !== undefined) computeNext(slot, event)
    }
    for (let at = 0; at < count; at++) {
      const slot = moving[at]
      if (slot === undefined) continue
      slot.state = slot.nextState
      index.place(slot, slot.nextBid)
    }
    return count
  }

  function watch(event: E, by: string, inner: number): void {
    if (inner > limit) {
      const [last, asking] = [recent.map(({ what }) => what), recent.map((each) => each.by)]
      throw new LivelockError(limit, last, [...new Set(asking)])
    }
    recent = [...recent, { what: label(event), by }].slice(-Math.min(TAIL, limit))
  }

  function recordTrace(event: E, source: string): void {
    options.trace?.(snapshot({ threads, bids: index.slots.map((slot) => slot.bid), event, source }))
  }

  function enter(what: string): void {
    if (running) throw new Error(`${what}() was called from inside a super-step; send() what follows and return`)
    running = what === 'superstep'
  }

  function restore(states: States): void {
    enter('restore')
    const restored = unnamed(threads, states)
    const bids = threads.map((thread, place) => thread.bid(restored[place]))
    for (const slot of index.slots) {
      slot.state = restored[slot.place]
      index.place(slot, bids[slot.place] ?? {})
    }
  }

  function put(thread: AnyThread<E>): void {
    joining.push(thread)
    if (!running) join()
  }

  function join(): void {
    const coming = joining
    joining = []
    for (const thread of coming) {
      const more = arrange([...threads.filter(({ name }) => name !== thread.name), thread])
      const fresh = initialStates([thread])[0]
      const states = new Map(index.slots.map(({ name, state }) => [name, state]))
      states.set(thread.name, fresh)
      index = createBidIndex(
        more,
        more.map(({ name }) => states.get(name)),
      )
      threads = more
    }
  }

  const copies = () => index.slots.map((slot) => plain(slot.state, stateOf(slot)))
  return { send: inbox.push, superstep, explain: () => index.explain(), put, states: () => named(threads, copies()), restore }
}

function computeNext<E extends KernelEvent>(slot: ThreadSlot<E>, event: E): void {
  const state: unknown = slot.thread.next(slot.state, event)
  if (state === undefined) throw new TypeError(`thread "${slot.name}" returned no state after ${label(event)}; next() must return one`)
  slot.nextState = state
  slot.nextBid = slot.thread.bid(state)
}

function namesOf<E extends KernelEvent>(slots: readonly ThreadSlot<E>[], count: number): string[] {
  const names: string[] = []
  for (let at = 0; at < count; at++) names.push(slots[at]?.name ?? '')
  return names
}

/**
 * Reports a program that never comes to rest: the engine selected more events without an external one in between than the caller allowed.
 * `last` has the labels of the latest events, `by` the threads that requested them.
 */
export class LivelockError extends Error {
  override readonly name = 'LivelockError'
  constructor(
    readonly maxSelections: number,
    readonly last: readonly string[],
    readonly by: readonly string[] = [],
  ) {
    super(
      `livelock: more than ${maxSelections} events in a row with no external one between, the last ${last.join(', ')}; ` +
        'a thread requests again what it was just given, or raise maxSelections if so long a chain is meant',
    )
  }
}

/** The bids at the moment when the event was selected; all lists are in program order. */
export type Snapshot<E extends KernelEvent> = {
  readonly event: E
  readonly source: string
  readonly requested: readonly string[]
  readonly waited: readonly string[]
  readonly interrupted: readonly string[]
  readonly blocked: readonly BlockedRequest<E>[]
}

/** Explains why an event was selected, for logs and for people. `bids` holds the bids before the event, one for each thread. */
function snapshot<E extends KernelEvent>(given: {
  readonly threads: readonly AnyThread<E>[]
  readonly bids: readonly Bid<E>[]
  readonly event: E
  readonly source: string
}): Snapshot<E> {
  const { threads, bids, event, source } = given
  const who = (does: (bid: Bid<E>) => boolean) => threads.filter((_, place) => does(bids[place] ?? {})).map((thread) => thread.name)
  return {
    event,
    source,
    requested: who((bid) => advances({ request: bid.request }, event)),
    waited: who((bid) => matches(bid.wait, event)),
    interrupted: who((bid) => matches(bid.interrupt, event)),
    blocked: explainBids(threads, bids),
  }
}

/** Formats one line: `act#c1 from calls; waited: loop; blocked: think of loop by cancel, limits`. */
export function describe<E extends KernelEvent>(shot: Snapshot<E>): string {
  const others = shot.requested.filter((name) => name !== shot.source)
  const blocked = shot.blocked.map(({ event, thread, by }) => `${label(event)} of ${thread} by ${by.join(', ')}`)
  const parts = [
    ['also requested', others],
    ['waited', shot.waited],
    ['interrupted', shot.interrupted],
    ['blocked', blocked],
  ] as const
  const words = parts.filter(([, names]) => names.length > 0).map(([word, names]) => `; ${word}: ${names.join(', ')}`)
  return `${label(shot.event)} from ${shot.source}${words.join('')}`
}
