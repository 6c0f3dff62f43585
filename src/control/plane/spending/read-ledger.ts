/** Reads the ledger page by page: every token that was ever counted, with its reason. */

import { type LedgerEntry, type LedgerQuery, ledgerEntry } from '../../contract/fleet-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOrNull } from '../context.ts'
import { int, intOrNull, text, textOrNull, time } from '../row.ts'

export function* readLedger({
  after,
  limit,
}: LedgerQuery): Command<{ readonly entries: readonly LedgerEntry[]; readonly next: number | null }> {
  const rows = yield ['SELECT * FROM ledger WHERE id > ? ORDER BY id LIMIT ?', [after, limit + 1]]
  const entries = rows.slice(0, limit).map(entryOf)
  return { entries, next: rows.length > limit ? (entries.at(-1)?.id ?? null) : null }
}

function entryOf(row: Row): LedgerEntry {
  return {
    id: int(row, 'id'),
    at: time(row, 'at'),
    day: text(row, 'day'),
    role: textOrNull(row, 'role'),
    agent_id: text(row, 'agent_id'),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    tokens: int(row, 'tokens'),
    reason: ledgerEntry.shape.reason.parse(row.reason),
    model: text(row, 'model'),
  }
}
