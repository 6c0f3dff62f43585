/** Deletes conversations, one or all, so that nothing of their words is left in the file; receipts stay. */

import { attempt, succeeds } from '../../kit/errors.ts'
import { homeRun, unfinishedRuns } from '../journal/journal.ts'
import { isAlive } from '../journal/process-owner.ts'
import { spentOfRun } from '../journal/spent-of-run.ts'
import type { Store } from '../store.ts'
import { catchUp, enter, type TurnRow, turnColumns, turnOfRow } from './conversations.ts'

type NotedStore = { readonly store: Store; readonly note: (type: string, body: unknown) => number }

/** `underWay`: runs of living processes, whose turns stay. `shrunk` is false when everything was deleted but the file keeps its size. */
type ClearResult =
  | { readonly ok: true; readonly conversations: number; readonly turns: number; readonly underWay: number; readonly shrunk: boolean }
  | { readonly ok: false; readonly message: string }

type Counts = { readonly conversations: number; readonly turns: number; readonly runs: number; readonly entries: number }

type ClearConsent = { readonly yes: boolean; readonly leave?: (deleted: Omit<Counts, 'entries'>) => void }

/**
 * Deletes conversations, journal, search index, runs and approvals. Receipts and the checkpoint stay, and so do all records of running
 * runs, because a journal without its start would look altered. Calls `leave` in the same transaction when anything was deleted.
 * `secure_delete` overwrites deleted rows; emptying the WAL and VACUUM remove the other copies.
 */
export function clearConversations({ store, note }: NotedStore, { yes, leave }: ClearConsent): ClearResult {
  if (!yes) return { ok: false, message: 'this deletes every conversation for good; receipts stay. Add --yes to do it' }
  store.script('PRAGMA secure_delete = ON')
  const counted = store.write(() => {
    const count = (rows: string) => `(SELECT count(*) FROM ${rows})`
    const select = `SELECT ${count('conversations')} AS conversations, ${count('turns')} AS turns, ${count('runs')} AS runs,
      ${count(`journal WHERE run_id <> '${homeRun}'`)} AS entries`
    const counts = () => store.sql<Counts, []>(select).get() ?? { conversations: 0, turns: 0, runs: 0, entries: 0 }
    const before = counts()
    const underWay = runsUnderWay(store)
    // Keeps the highest number, so that no later entry repeats a number that a reader has already seen.
    const last = before.entries > 0 ? note('memory.cleared', {}) : 0
    forget(store, underWay, last)
    const after = counts()
    const deleted = { conversations: before.conversations - after.conversations, turns: before.turns - after.turns }
    if (before.entries > after.entries || before.runs > after.runs) leave?.({ ...deleted, runs: before.runs - after.runs })
    return { ...deleted, underWay: underWay.length }
  })
  return { ok: true, ...counted, shrunk: shrink(store) }
}

function runsUnderWay(store: Store): string[] {
  const open = store.sql<{ runId: string; owner: string }, []>(
    `SELECT run_id AS runId, owner FROM runs WHERE run_id IN (${unfinishedRuns})`,
  )
  return open.all().flatMap(({ runId, owner }) => (isAlive(owner) ? [runId] : []))
}

/** A dead run that still lacks a receipt stays until the next start writes that receipt. */
function forget(store: Store, underWay: readonly string[], last: number): void {
  const others = 'run_id NOT IN (SELECT value FROM json_each(?))'
  // A trigger keeps the usage of a deleted run; of a run without an end only the journal knows it.
  for (const { runId } of store.sql<{ runId: string }, []>('SELECT run_id AS runId FROM runs WHERE ended IS NULL').all())
    store.run('UPDATE runs SET spent = ? WHERE run_id = ?', spentOfRun(store, runId), runId)
  for (const rows of [
    `turns WHERE ${others}`,
    `journal WHERE ${others} AND seq <> ${last}`,
    `approvals WHERE ${others}`,
    `runs WHERE ${others} AND run_id NOT IN (SELECT run_id FROM intents)`,
    `unprojected WHERE ${others}`,
  ])
    store.run(`DELETE FROM ${rows}`, JSON.stringify(underWay))
  store.script(
    `DELETE FROM conversations; DELETE FROM conversation_titles; DELETE FROM outbox; DELETE FROM read_labels; DELETE FROM summaries; DELETE FROM summary_failures;
     DELETE FROM replies; DELETE FROM token_conversations WHERE conversation_id NOT IN (SELECT conversation_id FROM runs);
     INSERT INTO turns_fts(turns_fts) VALUES ('delete-all');
     UPDATE agent_files SET base = bytes, base_sha256 = '', since = (SELECT coalesce(max(seq), 0) FROM journal), open = '{}'`,
  )
  const left = store.sql<TurnRow & { readonly journal_seq: number }, []>(`SELECT journal_seq, ${turnColumns} FROM turns ORDER BY id`).all()
  for (const row of left) enter(store, turnOfRow(row), { seq: row.journal_seq, at: row.at })
}

function shrink(store: Store): boolean {
  if (!succeeds(() => store.script('VACUUM'))) return false
  return attempt(() => store.sql<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0
}

/** `receipts`: the ids that the deleted entries name, oldest first; those receipts stay. */
type DeletedConversation = {
  readonly conversationId: string
  readonly turns: number
  readonly runs: number
  readonly receipts: readonly string[]
}

/** `underWay`: runs of the conversation that have not ended, or lack a result; nothing was deleted then. */
type Deletion = { readonly ok: true; readonly deleted: DeletedConversation } | { readonly ok: false; readonly underWay: readonly string[] }

const runsOfIt = 'SELECT run_id FROM runs WHERE conversation_id = ?'

/**
 * Call `leave` in the same transaction, before anything is deleted; it must add a note of the home, so that no later entry repeats a number
 * that a reader has already seen.
 */
export function deleteConversation(store: Store, conversationId: string, leave: (deleted: DeletedConversation) => void): Deletion {
  store.script('PRAGMA secure_delete = ON')
  // Without this, the words would stay in the older parts of the index.
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
      store.run(`DELETE FROM ${rows}`, conversationId)
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
  'outbox',
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
  store.run(`INSERT INTO turns_fts(turns_fts, rowid, content) SELECT 'delete', id, content FROM ${those}`, conversationId)
  store.run(`DELETE FROM ${those}`, conversationId)
}

/** The files of its agents keep their lines, which the journal can no longer produce. */
function settleFiles(store: Store, conversationId: string): void {
  const folders = `SELECT agent ->> 'folder' FROM runs WHERE conversation_id = ? AND agent IS NOT NULL`
  const update = `UPDATE agent_files SET base = bytes, base_sha256 = '', since = (SELECT coalesce(max(seq), 0) FROM journal), open = '{}'
       WHERE folder IN (${folders})`
  store.run(update, conversationId)
}
