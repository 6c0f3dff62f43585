/** Decides which change sets are kept, by number, age and bytes; the newest first. */

import type { SetSummary, StoreLimits } from '../contract.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

/**
 * The newest set is kept whatever its size. Sets that wait for a decision or for recovery are never chosen, and what is stuck only by its
 * age.
 * @returns the ids to forget
 */
export function expired(sets: readonly SetSummary[], { keepBytes, keepDays, keepSets }: StoreLimits, now: number): string[] {
  const isOld = ({ about }: SetSummary) => now - about.at > keepDays * DAY_MS
  const kept = sets
    .filter(({ state }) => !['pending', 'unfinished', 'stuck'].includes(state))
    .sort((a, b) => b.about.at - a.about.at || (a.id < b.id ? 1 : -1))
  let bytes = 0
  const beyond = kept.filter((set, at) => {
    bytes += set.bytes
    return at >= keepSets || (bytes > keepBytes && at > 0) || isOld(set)
  })
  return [...beyond, ...sets.filter((set) => set.state === 'stuck' && isOld(set))].map(({ id }) => id)
}
