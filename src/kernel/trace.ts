/** Explains why an event was selected: which threads requested, waited or were blocked at that moment. For logs and for people. */

import { advances, type BlockedRequest, explainBids, label, matches } from './select.ts'
import type { AnyThread, Bid, KernelEvent } from './thread.ts'

/** The bids at the moment when the event was selected; all lists are in program order. */
export type Snapshot<E extends KernelEvent> = {
  readonly event: E
  readonly source: string
  readonly requested: readonly string[]
  readonly waited: readonly string[]
  readonly interrupted: readonly string[]
  readonly blocked: readonly BlockedRequest<E>[]
}

/** `bids` holds the bids before the event, one for each thread. */
export function snapshot<E extends KernelEvent>(given: {
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
  const told = parts.filter(([, names]) => names.length > 0).map(([word, names]) => `; ${word}: ${names.join(', ')}`)
  return `${label(shot.event)} from ${shot.source}${told.join('')}`
}
