/** Conversations as people keep them: listed, shown, exported, cleared. The rows are written with the journal, never beside it. */

import type { JsonObject } from '../../kit/json.ts'
import { flat } from '../../kit/text.ts'
import { unfinishedRuns } from '../journal/journal.ts'
import { isAlive } from '../journal/process-owner.ts'
import { isFromFile, type Role, type Turn } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { indexTurns } from './word-index.ts'

/** `started` and `updated` in milliseconds since 1970; `turns` counts questions; `title` is the first question, shortened. */
export type Conversation = {
  readonly conversationId: string
  readonly started: number
  readonly updated: number
  readonly turns: number
  readonly title: string
}

/** `underWay`: runs that a living process is about, whose turns stay. `shrunk` is false when all is gone, but the file keeps its size. */
export type Cleared =
  | {
      readonly ok: true
      readonly conversations: number
      readonly turns: number
      readonly underWay: number
      readonly shrunk: boolean
    }
  | { readonly ok: false; readonly message: string }

export type ClearConsent = {
  readonly yes: boolean
  readonly leave?: (deleted: { readonly conversations: number; readonly turns: number; readonly runs: number }) => void
}

export type Conversations = {
  /** The one used last first: by sequence, for a clock may be set back. */
  list(page?: { readonly limit?: number; readonly offset?: number }): Conversation[]
  /** All rows, oldest first; empty when there is no such conversation. */
  show(conversationId: string): Turn[]
  /** One JSON line a turn row, oldest first, of one conversation or of all. */
  exportJsonl(conversationId?: string): Generator<string>
  /** Whether anything was said in it that was not cleared. */
  has(conversationId: string): boolean
  /** Where it was begun; undefined of one that is older than this is recorded. */
  folderOf(conversationId: string): string | undefined
  /** The one used last of those that were begun in this folder. */
  latestIn(folder: string): string | undefined
  /**
   * Deletes what was said: conversations, journal, search index, runs, approvals. Receipts and the checkpoint stay, and so does all of the
   * runs that are under way: a journal without its beginning could not be told from one that somebody altered. `leave` is called in the same
   * transaction when anything was deleted.
   */
  clear(consent: ClearConsent): Cleared
}

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

export function createConversations(store: Store): Conversations {
  function list({ limit = 50, offset = 0 }: { readonly limit?: number; readonly offset?: number } = {}): Conversation[] {
    return store
      .sql<Conversation, [number, number]>(
        `SELECT conversation_id AS conversationId, started, updated, turns, title FROM conversations
         ORDER BY last_seq DESC LIMIT ? OFFSET ?`,
      )
      .all(limit, offset)
  }

  function show(conversationId: string): Turn[] {
    return store.sql<TurnRow, [string]>(rowsOfOne).all(conversationId).map(turnOfRow)
  }

  function* exportJsonl(conversationId?: string): Generator<string> {
    const rows =
      conversationId === undefined
        ? store.sql<TurnRow, []>(`SELECT ${turnColumns} FROM turns ORDER BY id`).iterate()
        : store.sql<TurnRow, [string]>(rowsOfOne).iterate(conversationId)
    for (const row of rows) yield `${JSON.stringify(turnOfRow(row))}\n`
  }

  function has(conversationId: string): boolean {
    return store.sql('SELECT 1 FROM conversations WHERE conversation_id = ?').get(conversationId) !== null
  }

  function folderOf(conversationId: string): string | undefined {
    const rows = store.sql<{ folder: string }, [string]>(
      'SELECT folder FROM runs WHERE conversation_id = ? AND folder IS NOT NULL ORDER BY rowid LIMIT 1',
    )
    return rows.get(conversationId)?.folder
  }

  function latestIn(folder: string): string | undefined {
    const rows = store.sql<{ id: string }, [string]>(
      `SELECT conversation_id AS id FROM runs WHERE folder = ? AND EXISTS (SELECT 1 FROM conversations WHERE conversation_id = runs.conversation_id)
       ORDER BY rowid DESC LIMIT 1`,
    )
    return rows.get(folder)?.id
  }

  return { list, show, exportJsonl, has, folderOf, latestIn, clear: (consent) => clear(store, consent) }
}

/** Adds a turn row and its conversation's line; the index of words follows later. Called inside the journal's transaction. */
export function addTurn(store: Store, turn: Turn, entry: Place): void {
  indexTurns(store, insertTurn(store, turn, entry))
}

type Place = { readonly seq: number; readonly at: number }

/** @returns the row's id */
function insertTurn(store: Store, turn: Turn, place: Place): number {
  const { lastInsertRowid } = insertValues(store, turnValues(turn, place))
  enter(store, turn, place)
  return Number(lastInsertRowid)
}

/** As `turnValues` gives them. */
export function insertValues(store: Store, values: readonly (string | number | null)[]) {
  return store
    .sql<never, (string | number | null)[]>(
      `INSERT INTO turns(journal_seq, run_id, ${turnColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(...values)
}

/** journal_seq, run_id, and the columns of `turnColumns`, as the table holds them. */
export function turnValues(turn: Turn, { seq, at }: Place): readonly (string | number | null)[] {
  const { conversation_id, turn_id, role, content, tool_calls, tool_results, provider, model, metadata } = turn
  const told = [
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
  return [seq, runOf(metadata), ...told]
}

/** What the list of conversations says of one. */
export type ConversationLine = Omit<Conversation, 'conversationId'> & { readonly lastSeq: number }

/** The line after one more turn. */
export function enterLine(line: ConversationLine | undefined, turn: TurnLine, { seq, at }: Place): ConversationLine {
  const asks = turn.role === 'user' && !isFromFile(turn)
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

/** In the line of its conversation. */
function enter(store: Store, turn: TurnLine, place: Place): void {
  const { conversation_id: id } = turn
  const kept = store.sql<ConversationLine, [string]>(`SELECT ${lineColumns} FROM conversations WHERE conversation_id = ?`).get(id)
  insertLine(store, id, enterLine(kept ?? undefined, turn, place))
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

/** `secure_delete` overwrites what is deleted; the emptied WAL and VACUUM take away the other copies. */
function clear(store: Store, { yes, leave }: ClearConsent): Cleared {
  if (!yes) return { ok: false, message: 'this deletes every conversation for good; receipts stay. Add --yes to do it' }
  store.script('PRAGMA secure_delete = ON')
  const counted = store.write(() => {
    const count = (table: string) => store.sql<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0
    const counts = () => ({ conversations: count('conversations'), turns: count('turns'), runs: count('runs'), entries: count('journal') })
    const before = counts()
    const underWay = runsUnderWay(store)
    forget(store, underWay)
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

/** A dead run that still owes a receipt stays until the next start writes that. */
function forget(store: Store, underWay: readonly string[]): void {
  const others = 'run_id NOT IN (SELECT value FROM json_each(?))'
  for (const rows of [
    `turns WHERE ${others}`,
    `journal WHERE ${others}`,
    `approvals WHERE ${others}`,
    `runs WHERE ${others} AND run_id NOT IN (SELECT run_id FROM intents)`,
    `unprojected WHERE ${others}`,
  ])
    store.sql<never, [string]>(`DELETE FROM ${rows}`).run(JSON.stringify(underWay))
  store.script(
    `DELETE FROM conversations; DELETE FROM summaries; DELETE FROM summary_failures; INSERT INTO turns_fts(turns_fts) VALUES ('delete-all');
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
