/** Updates the word index in batches, because turns are cheaper to write without it; readers let it catch up first. */

import type { Store } from '../store.ts'

/** The index lags by at most this many turns, so that a search never has to index months of turns. */
const mostBehind = 64

/** Call it with each new turn, in its transaction. */
export function indexTurns(store: Store, turnId: number): void {
  if (turnId % mostBehind === 0) catchUp(store)
}

/** @throws SQLiteError when the file cannot be written */
export function catchUp(store: Store): void {
  const behind = store.sql<{ one: number }, []>(`SELECT 1 AS one FROM turns WHERE id > ${indexed} LIMIT 1`)
  if (behind.get() === null) return
  store.write(() => store.script(`INSERT INTO turns_fts(rowid, content) SELECT id, content FROM turns WHERE id > ${indexed} ORDER BY id`))
}

/** Ignores index rows that somebody inserted beyond the last turn. */
const indexed = '(SELECT coalesce(max(id), 0) FROM turns_fts_docsize WHERE id <= (SELECT max(id) FROM turns))'
