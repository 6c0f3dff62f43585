/** The running digest of a run's journal: each entry's covers the one before it, so that the first altered entry can be named. */

import { sha256 } from '../../kit/sha256.ts'
import type { JournalEntry } from './journal-entry.ts'

/** An entry as it is stored: `body` is the very text. `digest` is null in entries of programs that knew of none. */
export type StoredEntry = Omit<JournalEntry, 'body'> & { readonly body: string; readonly digest: string | null }

/** `event` counts the run's entries from 1; `seq` is the entry's own number. */
export type AlteredEntry = { readonly event: number; readonly seq: number; readonly message: string }

/** SHA-256 in hex. `previous` is that of the entry before, null for a run's first. Nothing in it is secret: it shows changes, it does not forbid them. */
export function digestOf(runId: string, previous: string | null, { kind, type, at, body }: Omit<StoredEntry, 'seq' | 'digest'>): string {
  return sha256(JSON.stringify([previous, runId, kind, type, at]) + body)
}

/**
 * The first entry of a run that is not what was written, or follows one that is gone. Entries without a digest are believed only before
 * the first that has one. An end that was cut off is seen by its seal, not here.
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
