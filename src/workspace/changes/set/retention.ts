/** Decides which change sets are kept, by number, age and bytes; the newest first. */

import type { SetSummary, StoreLimits } from '../contract.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

/** Sets that wait for a decision or for recovery are never chosen. @returns the ids to forget */
export function expired(sets: readonly SetSummary[], { keepBytes, keepDays, keepSets }: StoreLimits, now: number): string[] {
  const kept = sets
    .filter(({ state }) => state !== 'pending' && state !== 'unfinished')
    .sort((a, b) => b.about.at - a.about.at || (a.id < b.id ? 1 : -1))
  let bytes = 0
  return kept.flatMap(({ id, about, bytes: own }, at) => {
    bytes += own
    return at >= keepSets || bytes > keepBytes || now - about.at > keepDays * DAY_MS ? [id] : []
  })
}
