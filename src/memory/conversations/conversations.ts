/** Lists, names, shows, exports and clears conversations; the transaction of the journal writes their rows. */

import type { JsonObject } from '../../kit/json.ts'
import { flat } from '../../kit/text.ts'
import type { Clock } from '../../runtime/port.ts'
import { homeRun, noteInHome, unfinishedRuns } from '../journal/journal.ts'
import { isAlive } from '../journal/process-owner.ts'
import { spentOfRun } from '../journal/spent-of-run.ts'
import { isQuestion, type Role, type Turn } from '../journal/turns.ts'
import type { Store } from '../store.ts'

/** `underWay`: runs of living processes, whose turns stay. `shrunk` is false when everything was deleted but the file keeps its size. */
export type ClearResult =
  | { readonly ok: true; readonly conversations: number; readonly turns: number; readonly underWay: number; readonly shrunk: boolean }
  | { readonly ok: false; readonly message: string }

export type ClearConsent = {
  readonly yes: boolean
  readonly leave?: (deleted: { readonly conversations: number; readonly turns: number; readonly runs: number }) => void
}

export type Conversations = ReturnType<typeof createConversations>

export type TurnRow = Omit<Turn, 'timestamp' | 'tool_calls' | 'tool_results' | 'metadata'> & {
  readonly at: number
  readonly role: Role
  readonly tool_calls: string | null
  readonly tool_results: string | null
  readonly metadata: string
}

export const turnColumns = 'conversation_id, turn_id, at, role, content, tool_calls, tool_results, provider, model, metadata'
const rowsOfOne = `SELECT ${turnColumns} FROM turns WHERE run_id IN (SELECT run_id FROM runs WHERE conversation_id = ?) ORDER BY id`
const titleLength = 80

export function createConversations(store: Store, now: Clock) {
  /** Returns all rows, oldest first; none for an unknown conversation. */
  function show(conversationId: string): Turn[] {
    return store.sql<TurnRow, [string]>(rowsOfOne).all(conversationId).map(turnOfRow)
  }

  /** Yields one JSON line per turn row, oldest first, of one conversation or of all. */
  function* exportJsonl(conversationId?: string): Generator<string> {
    const rows =
      conversationId === undefined
        ? store.sql<TurnRow, []>(`SELECT ${turnColumns} FROM turns ORDER BY id`).iterate()
        : store.sql<TurnRow, [string]>(rowsOfOne).iterate(conversationId)
    for (const row of rows) yield `${JSON.stringify(turnOfRow(row))}\n`
  }

  /** Tells whether the conversation has a turn that was not cleared. */
  function has(conversationId: string): boolean {
    return store.sql('SELECT 1 FROM conversations WHERE conversation_id = ?').get(conversationId) !== null
  }

  function count(): number {
    return store.sql<{ count: number }, []>('SELECT count(*) AS count FROM conversations').get()?.count ?? 0
  }

  /** Returns the folder where the conversation began; undefined for one that is older than this field. */
  function folderOf(conversationId: string): string | undefined {
    const rows = store.sql<{ folder: string }, [string]>(
      'SELECT folder FROM runs WHERE conversation_id = ? AND folder IS NOT NULL ORDER BY rowid LIMIT 1',
    )
    return rows.get(conversationId)?.folder
  }

  /** Returns the most recently used conversation that began in this folder; nobody continues that of a check. */
  function latestIn(folder: string): string | undefined {
    const rows = store.sql<{ id: string }, [string]>(
      `SELECT conversation_id AS id FROM runs WHERE folder = ? AND channel <> 'check' AND EXISTS (SELECT 1 FROM conversations WHERE conversation_id = runs.conversation_id)
       ORDER BY rowid DESC LIMIT 1`,
    )
    return rows.get(folder)?.id
  }

  return {
    /** Most recently used first: by sequence, because a clock may be set back. */
    list: (query: ConversationsQuery = {}) => listConversations(store, query).map(({ position: _, ...conversation }) => conversation),
    /** Works as `list`, with the position of each for the next page. */
    page: (query: ConversationsQuery) => listConversations(store, query),
    find: (conversationId: string) => listedConversation(store, conversationId),
    idsOf: (ref: string) => conversationIdsOf(store, ref),
    /** Call it inside a transaction. */
    rename: (conversationId: string, title: string) => keepTitle(store, conversationId, title),
    delete: (conversationId: string, leave: (deleted: DeletedConversation) => void) => deleteConversation(store, conversationId, leave),
    show,
    exportJsonl,
    has,
    count,
    folderOf,
    latestIn,
    /**
     * Deletes conversations, journal, search index, runs and approvals. Receipts and the checkpoint stay, and so do all records of running
     * runs, because a journal without its start would look altered. Calls `leave` in the same transaction when anything was deleted.
     */
    clear: (consent: ClearConsent) => clear(store, now, consent),
  }
}

/** Adds a turn row and updates its conversation's line; the word index follows later. Call it inside the journal's transaction. */
export function addTurn(store: Store, turn: Turn, entry: EntryPosition): void {
  // The index is written for many turns at once, because that is cheaper.
  if (insertTurn(store, turn, entry) % mostBehind === 0) catchUp(store)
}

type EntryPosition = { readonly seq: number; readonly at: number }

/** @returns the row's id */
function insertTurn(store: Store, turn: Turn, place: EntryPosition): number {
  const { lastInsertRowid } = insertValues(store, turnValues(turn, place))
  enter(store, turn, place)
  return Number(lastInsertRowid)
}

/** Inserts values as `turnValues` returns them. */
export function insertValues(store: Store, values: readonly (string | number | null)[]) {
  return store
    .sql<never, (string | number | null)[]>(
      `INSERT INTO turns(journal_seq, run_id, ${turnColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(...values)
}

/** Returns journal_seq, run_id, and the columns of `turnColumns`, as stored in the table. */
export function turnValues(turn: Turn, { seq, at }: EntryPosition): readonly (string | number | null)[] {
  const { conversation_id, turn_id, role, content, tool_calls, tool_results, provider, model, metadata } = turn
  const values = [
    conversation_id,
    turn_id,
    at,
    role,
    content,
    json(tool_calls),
    json(tool_results),
    provider,
    model,
    JSON.stringify(metadata),
  ]
  return [seq, runOf(metadata), ...values]
}

/** The row of one conversation in the list. */
export type ConversationLine = Omit<Conversation, 'conversationId'> & { readonly lastSeq: number }

/** Returns the line after one more turn. */
export function enterLine(line: ConversationLine | undefined, turn: TurnLine, { seq, at }: EntryPosition): ConversationLine {
  const asks = isQuestion(turn)
  const { started = at, updated = at, turns = 0, title = '' } = line ?? {}
  return {
    started,
    updated: Math.max(updated, at),
    turns: turns + (asks ? 1 : 0),
    title: title === '' && asks ? titleOf(turn.content) : title,
    lastSeq: seq,
  }
}

type TurnLine = Pick<Turn, 'conversation_id' | 'role' | 'content' | 'metadata'>

/** Updates the line of the turn's conversation. */
function enter(store: Store, turn: TurnLine, place: EntryPosition): void {
  const { conversation_id: id } = turn
  const line = store.sql<ConversationLine, [string]>(`SELECT ${lineColumns} FROM conversations WHERE conversation_id = ?`).get(id)
  insertLine(store, id, enterLine(line ?? undefined, turn, place))
}

export const lineColumns = 'started, updated, turns, title, last_seq AS lastSeq'

export function insertLine(store: Store, id: string, { started, updated, turns, title, lastSeq }: ConversationLine): void {
  store
    .sql<never, [string, number, number, number, string, number]>(
      `INSERT INTO conversations(conversation_id, started, updated, turns, title, last_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
       ON CONFLICT DO UPDATE SET updated = ?3, turns = ?4, title = ?5, last_seq = ?6`,
    )
    .run(id, started, updated, turns, title, lastSeq)
}

/** `secure_delete` overwrites deleted rows; emptying the WAL and VACUUM remove the other copies. */
function clear(store: Store, now: Clock, { yes, leave }: ClearConsent): ClearResult {
  if (!yes) return { ok: false, message: 'this deletes every conversation for good; receipts stay. Add --yes to do it' }
  store.script('PRAGMA secure_delete = ON')
  const counted = store.write(() => {
    const count = (table: string) => store.sql<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0
    const counts = () => ({
      conversations: count('conversations'),
      turns: count('turns'),
      runs: count('runs'),
      entries: count(`journal WHERE run_id <> '${homeRun}'`),
    })
    const before = counts()
    const underWay = runsUnderWay(store)
    // Keeps the highest number, so that no later entry repeats a number that a reader has already seen.
    const note = before.entries > 0 ? noteInHome(store, now, 'memory.cleared', {}) : 0
    forget(store, underWay, note)
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
function forget(store: Store, underWay: readonly string[], note: number): void {
  const others = 'run_id NOT IN (SELECT value FROM json_each(?))'
  // A trigger keeps the usage of a deleted run; of a run without an end only the journal knows it.
  for (const { runId } of store.sql<{ runId: string }, []>('SELECT run_id AS runId FROM runs WHERE ended IS NULL').all())
    store.sql<never, [string, string]>('UPDATE runs SET spent = ? WHERE run_id = ?').run(spentOfRun(store, runId), runId)
  for (const rows of [
    `turns WHERE ${others}`,
    `journal WHERE ${others} AND seq <> ${note}`,
    `approvals WHERE ${others}`,
    `runs WHERE ${others} AND run_id NOT IN (SELECT run_id FROM intents)`,
    `unprojected WHERE ${others}`,
  ])
    store.sql<never, [string]>(`DELETE FROM ${rows}`).run(JSON.stringify(underWay))
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
  try {
    store.script('VACUUM')
    return store.sql<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0
  } catch {
    return false
  }
}

export function turnOfRow({ at, tool_calls, tool_results, metadata, ...row }: TurnRow): Turn {
  const { conversation_id, turn_id, role, content, provider, model } = row
  const parsed: JsonObject = JSON.parse(metadata)
  return {
    conversation_id,
    turn_id,
    timestamp: new Date(at).toISOString(),
    role,
    content,
    tool_calls: JSON.parse(tool_calls ?? 'null'),
    tool_results: JSON.parse(tool_results ?? 'null'),
    provider,
    model,
    metadata: parsed,
  }
}

function runOf(metadata: JsonObject): string {
  return typeof metadata.run_id === 'string' ? metadata.run_id : ''
}

function json(value: Turn['tool_calls']): string | null {
  return value === null ? null : JSON.stringify(value)
}

function titleOf(content: string): string {
  const line = flat(content.slice(0, 1000).trim())
  return line.length > titleLength ? `${line.slice(0, titleLength - 1).toWellFormed()}…` : line
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
function deleteConversation(store: Store, conversationId: string, leave: (deleted: DeletedConversation) => void): Deletion {
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

/** The index lags by at most this many turns, so that a search never has to index months of turns. */
const mostBehind = 64

/** Adds the turns that the index lacks. Readers call it first. @throws SQLiteError when the file cannot be written */
export function catchUp(store: Store): void {
  const behind = store.sql<{ one: number }, []>(`SELECT 1 AS one FROM turns WHERE id > ${indexed} LIMIT 1`)
  if (behind.get() === null) return
  store.write(() => store.script(`INSERT INTO turns_fts(rowid, content) SELECT id, content FROM turns WHERE id > ${indexed} ORDER BY id`))
}

/** Ignores index rows that somebody inserted beyond the last turn. */
const indexed = '(SELECT coalesce(max(id), 0) FROM turns_fts_docsize WHERE id <= (SELECT max(id) FROM turns))'

/** `started` and `updated` in milliseconds since 1970; `turns` counts questions; `title` as given, else the first question, shortened. */
export type Conversation = {
  readonly conversationId: string
  readonly started: number
  readonly updated: number
  readonly turns: number
  readonly title: string
}

export type ConversationsQuery = {
  readonly limit?: number
  readonly offset?: number
  /** Lists only conversations that were used before this position: the `position` of an earlier page. */
  readonly before?: number | undefined
  /** Only conversations that the token of this id began. */
  readonly ownedBy?: string | undefined
}

/** `position`: where the conversation stands in the list now. */
export type ListedConversation = Conversation & { readonly position: number }

export const columns = `conversation_id AS conversationId, started, updated, turns,
  coalesce((SELECT given.title FROM conversation_titles AS given WHERE given.conversation_id = conversations.conversation_id), title) AS title,
  last_seq AS position`

export const conversationsOfToken = 'SELECT conversation_id FROM token_conversations WHERE token_id = ?'

/** Most recently used first: by sequence, because a clock may be set back. */
export function listConversations(
  store: Store,
  { limit = 50, offset = 0, before = Number.MAX_SAFE_INTEGER, ownedBy }: ConversationsQuery,
): ListedConversation[] {
  const owned = ownedBy === undefined ? '' : `AND conversation_id IN (${conversationsOfToken})`
  const rows = store.sql<ListedConversation, (string | number)[]>(
    `SELECT ${columns} FROM conversations WHERE last_seq < ? ${owned} ORDER BY last_seq DESC LIMIT ? OFFSET ?`,
  )
  return rows.all(before, ...(ownedBy === undefined ? [] : [ownedBy]), limit, offset)
}

export function listedConversation(store: Store, conversationId: string): ListedConversation | undefined {
  return (
    store.sql<ListedConversation, [string]>(`SELECT ${columns} FROM conversations WHERE conversation_id = ?`).get(conversationId) ??
    undefined
  )
}

/** Call it inside a transaction. */
export function keepTitle(store: Store, conversationId: string, title: string): void {
  store
    .sql<never, [string, string]>('INSERT INTO conversation_titles VALUES (?, ?) ON CONFLICT DO UPDATE SET title = excluded.title')
    .run(conversationId, title)
}

/** Returns the conversations with that name, or whose id begins so; at most ten. */
function conversationIdsOf(store: Store, ref: string): string[] {
  const rows = store.sql<{ id: string }, [string]>(
    `SELECT conversationId AS id FROM (SELECT ${columns} FROM conversations) WHERE title = ?1
       OR (length(?1) > length('conversation_') AND substr(conversationId, 1, length(?1)) = ?1) LIMIT 10`,
  )
  return rows.all(ref).map(({ id }) => id)
}
