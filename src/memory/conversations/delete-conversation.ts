/** Deletes everything that was said in one conversation, so that no copy of the text stays in the database file. */

import { homeRun } from '../journal/feed/home-notes.ts'
import { unfinishedRuns } from '../journal/journal.ts'
import type { Store } from '../store.ts'
import { catchUp } from './word-index.ts'

/** `receipts`: the ids that the deleted entries name, oldest first; those receipts stay. */
export type DeletedConversation = {
  readonly conversationId: string
  readonly turns: number
  readonly runs: number
  readonly receipts: readonly string[]
}

/** `underWay`: runs of the conversation that have not ended, or lack a result; nothing was deleted then. */
export type Deletion =
  | { readonly ok: true; readonly deleted: DeletedConversation }
  | { readonly ok: false; readonly underWay: readonly string[] }

const runsOfIt = 'SELECT run_id FROM runs WHERE conversation_id = ?'

/**
 * Call `leave` in the same transaction, before anything is gone; it must add a note of the home, so that no later entry gets a number that
 * somebody has seen already.
 */
export function deleteConversation(store: Store, conversationId: string, leave: (deleted: DeletedConversation) => void): Deletion {
  store.script('PRAGMA secure_delete = ON')
  // Else the words would stay in the older parts of the index.
  store.script(`INSERT INTO turns_fts(turns_fts, rank) VALUES ('secure-delete', 1)`)
  catchUp(store)
  const deletion = store.write((): Deletion => {
    const open = store.sql<{ id: string }, [string]>(`${runsOfIt.replace('run_id', 'run_id AS id')} AND run_id IN (${unfinishedRuns})`)
    const underWay = open.all(conversationId).map(({ id }) => id)
    if (underWay.length > 0) return { ok: false, underWay }
    const deleted = { conversationId, ...counted(store, conversationId), receipts: receiptsOf(store, conversationId) }
    leave(deleted)
    forgetTurns(store, conversationId)
    settleFiles(store, conversationId)
    for (const rows of [
      `journal WHERE run_id <> '${homeRun}' AND run_id IN (${runsOfIt})`,
      `unprojected WHERE run_id IN (${runsOfIt})`,
      ...ofConversation.map((table) => `${table} WHERE conversation_id = ?`),
    ])
      store.sql<never, [string]>(`DELETE FROM ${rows}`).run(conversationId)
    return { ok: true, deleted }
  })
  store.script('PRAGMA wal_checkpoint(TRUNCATE)')
  return deletion
}

/** `runs` comes last: the rows before it are found by it. */
const ofConversation = [
  'approvals',
  'conversation_titles',
  'read_labels',
  'results',
  'summaries',
  'summary_failures',
  'channel_addresses',
  'conversations',
  'runs',
]

function counted(store: Store, conversationId: string): { readonly turns: number; readonly runs: number } {
  const count = (rows: string) => store.sql<{ n: number }, [string]>(`SELECT count(*) AS n FROM ${rows}`).get(conversationId)?.n ?? 0
  return { turns: count(`turns WHERE run_id IN (${runsOfIt})`), runs: count('runs WHERE conversation_id = ?') }
}

function receiptsOf(store: Store, conversationId: string): string[] {
  const named = store.sql<{ receipt: string | null }, [string]>(
    `SELECT coalesce(body ->> '$.receipt', body ->> '$.outcome.receipt') AS receipt FROM journal
     WHERE run_id IN (${runsOfIt}) AND type IN ('tool.done', 'deny', 'drop') AND json_valid(body) ORDER BY seq`,
  )
  return named.all(conversationId).flatMap(({ receipt }) => receipt ?? [])
}

/** The index has no text of its own: a row is removed from it with the text that it was made of. */
function forgetTurns(store: Store, conversationId: string): void {
  const those = `turns WHERE run_id IN (${runsOfIt})`
  store
    .sql<never, [string]>(`INSERT INTO turns_fts(turns_fts, rowid, content) SELECT 'delete', id, content FROM ${those}`)
    .run(conversationId)
  store.sql<never, [string]>(`DELETE FROM ${those}`).run(conversationId)
}

/** The files of its agents keep their lines, which the journal can no longer produce. */
function settleFiles(store: Store, conversationId: string): void {
  const folders = `SELECT agent ->> 'folder' FROM runs WHERE conversation_id = ? AND agent IS NOT NULL`
  store
    .sql<never, [string]>(
      `UPDATE agent_files SET base = bytes, base_sha256 = '', since = (SELECT coalesce(max(seq), 0) FROM journal), open = '{}'
       WHERE folder IN (${folders})`,
    )
    .run(conversationId)
}
