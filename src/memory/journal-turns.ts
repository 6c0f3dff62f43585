/** Computes the conversation tables from the journal: every turn row in order, and the line of each conversation. */

import type { RunIdentity } from '../runtime/port.ts'
import { type ConversationLine, enterLine, turnValues } from './conversations/conversations.ts'
import type { JournalEntry } from './journal/journal-entry.ts'
import { turnOf } from './journal/turns.ts'
import type { Store } from './store.ts'

/** The values of one row in the order of the table's columns: journal_seq, run_id, and `turnColumns`. */
export type TurnValues = readonly (string | number | null)[]

export type ToldTurns = {
  /** @throws Unreadable for an entry that no run writes */
  readonly turns: Iterable<TurnValues>
  /** Complete after all turns were read. */
  readonly conversations: ReadonlyMap<string, ConversationLine>
}

export class Unreadable extends Error {}

export type JournalRow = Omit<JournalEntry, 'body'> & { readonly body: string }

export const entryColumns = 'seq, kind, type, at, body'

type Row = JournalRow & RunIdentity

/** @param onEntry called with each entry's number */
export function turnsFromJournal(store: Store, onEntry: (seq: number) => void = () => {}): ToldTurns {
  const conversations = new Map<string, ConversationLine>()

  function* turns(): Generator<TurnValues> {
    const rows = store.sql<Row, []>(
      `SELECT ${entryColumns}, run_id AS runId, conversation_id AS conversationId, turn_id AS turnId, provider, runs.model, channel
       FROM journal JOIN runs USING (run_id) ORDER BY seq`,
    )
    const tools = new Map<string, string>()
    for (const row of rows.iterate()) {
      onEntry(row.seq)
      const turn = turnIn(row, tools)
      if (!turn) continue
      conversations.set(turn.conversation_id, enterLine(conversations.get(turn.conversation_id), turn, row))
      yield turnValues(turn, row)
    }
  }

  return { turns: turns(), conversations }
}

function turnIn(row: Row, tools: Map<string, string>) {
  const entry = entryOf(row)
  if (!entry) throw new Unreadable(`journal entry ${row.seq} of ${row.runId} is no JSON`)
  try {
    if (entry.kind === 'intent') note(tools, row.runId, entry)
    return turnOf(row, entry, (callId) => tools.get(`${row.runId}\n${callId}`))
  } catch {
    throw new Unreadable(`journal entry ${row.seq} of ${row.runId} is not what a run writes`)
  }
}

/** Returns undefined for a body with invalid JSON, which our code never writes. */
export function entryOf(row: JournalRow): JournalEntry | undefined {
  try {
    return { ...row, body: JSON.parse(row.body) }
  } catch {
    return undefined
  }
}

function note(tools: Map<string, string>, runId: string, { body }: JournalEntry): void {
  const act: { id?: unknown; call?: { name?: unknown } } = Object(body)
  tools.set(`${runId}\n${String(act.id)}`, String(act.call?.name))
}
