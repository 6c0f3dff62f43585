/** Chains the digests of a run's journal, each covering the previous one, so that the first altered entry can be found. */

import { sha256 } from '../../kit/sha256.ts'
import type { JournalEntry } from './journal-entry.ts'

/** An entry as stored: `body` is the exact text. `digest` is null in entries of versions without digests. */
export type StoredEntry = Omit<JournalEntry, 'body'> & { readonly body: string; readonly digest: string | null }

/** `event` counts the run's entries from 1; `seq` is the entry's own number. */
export type AlteredEntry = { readonly event: number; readonly seq: number; readonly message: string }

/**
 * Returns SHA-256 in hex. `previous` is the digest of the previous entry, null for a run's first. It uses no secret: it reveals changes,
 * but does not prevent them.
 */
export function digestOf(runId: string, previous: string | null, { kind, type, at, body }: Omit<StoredEntry, 'seq' | 'digest'>): string {
  return sha256(JSON.stringify([previous, runId, kind, type, at]) + body)
}

/**
 * Returns the first altered entry of a run, or the first after a deleted one. Entries without a digest are accepted only before the first
 * entry with one. The seal, not this function, reveals a truncated end.
 */
export function firstAltered(runId: string, entries: Iterable<StoredEntry>): AlteredEntry | undefined {
  let previous: string | null = null
  let event = 0
  for (const entry of entries) {
    event += 1
    if (entry.digest === null && previous === null) continue
    if (entry.digest !== digestOf(runId, previous, entry))
      return { event, seq: entry.seq, message: `event ${event} is not what was written, or what stood before it is gone` }
    previous = entry.digest
  }
}
