/** Declares what the functions over the records of a home share. */

import type { Memory } from '../../memory/memory.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import type { Conversation, Setup } from '../api.ts'

/** What a host adds whose turns may wait in this process. */
export type LiveTurns = {
  /** Returns the conversation of this host that waits for an answer to this question. */
  asking(id: string): Conversation | undefined
  /** Call it when something was written: who waits in this process, and who follows the events, learns of it at once. */
  written(): void
}

export type RecordsBase = {
  readonly setup: Setup
  readonly memory: Memory
  readonly record: RecordWriter
  /** Absent for a command, which has no turns of its own. */
  readonly live?: LiveTurns
}

/** The limits of every list: what is asked for, but no more than `most`. */
export function limited(asked: number | undefined, usual: number, most = 500): number {
  return Math.max(1, Math.min(most, Math.trunc(asked ?? usual)))
}
