/** The index of words lags behind the turns, which are cheaper to write without it, and catches up before anything reads it. */

import type { Store } from '../store.ts'

/** So many turns at most are ever behind: a search must not pay for months. */
const mostBehind = 64

/** To be called with each new turn, in its transaction. */
export function indexTurns(store: Store, turnId: number): void {
  if (turnId % mostBehind === 0) catchUp(store)
}

/** @throws SQLiteError when the file cannot be written */
export function catchUp(store: Store): void {
  const behind = store.sql<{ one: number }, []>(`SELECT 1 AS one FROM turns WHERE id > ${indexed} LIMIT 1`)
  if (behind.get() === null) return
  store.write(() => store.script(`INSERT INTO turns_fts(rowid, content) SELECT id, content FROM turns WHERE id > ${indexed} ORDER BY id`))
}

/** What somebody planted beyond the last turn does not count. */
const indexed = '(SELECT coalesce(max(id), 0) FROM turns_fts_docsize WHERE id <= (SELECT max(id) FROM turns))'
