/** Lists, names, shows and exports conversations; the transaction of the journal writes their rows. */

import { flat } from '../../kit/text.ts'
import { isQuestion, type Role, type Turn } from '../journal/turns.ts'
import type { Store } from '../store.ts'

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

export function createConversations(store: Store) {
  /** Most recently used first, by sequence, because a clock may be set back; with the position of each for the next page. */
  function page({ limit = 50, offset = 0, before = Number.MAX_SAFE_INTEGER, ownedBy }: ConversationsQuery): ListedConversation[] {
    const owned = ownedBy === undefined ? '' : `AND conversation_id IN (${conversationsOfToken})`
    const select = `SELECT ${columns} FROM conversations WHERE last_seq < ? ${owned} ORDER BY last_seq DESC LIMIT ? OFFSET ?`
    const rows = store.sql<ListedConversation, (string | number)[]>(select)
    return rows.all(before, ...(ownedBy === undefined ? [] : [ownedBy]), limit, offset)
  }

  return {
    page,
    /** Works as `page`, without positions. */
    list: (query: ConversationsQuery = {}) => page(query).map(({ position: _, ...conversation }) => conversation),
    find: (conversationId: string) =>
      store.sql<ListedConversation, [string]>(`SELECT ${columns} FROM conversations WHERE conversation_id = ?`).get(conversationId) ??
      undefined,
    /** Returns the conversations with that name, or whose id begins so; at most ten. */
    idsOf(ref: string): string[] {
      const rows = store.sql<{ id: string }, [string]>(
        `SELECT conversationId AS id FROM (SELECT ${columns} FROM conversations) WHERE title = ?1
           OR (length(?1) > length('conversation_') AND substr(conversationId, 1, length(?1)) = ?1) LIMIT 10`,
      )
      return rows.all(ref).map(({ id }) => id)
    },
    /** Call it inside a transaction. */
    rename(conversationId: string, title: string): void {
      const put = 'INSERT INTO conversation_titles VALUES (?, ?) ON CONFLICT DO UPDATE SET title = excluded.title'
      store.run(put, conversationId, title)
    },
    /** Returns all rows, oldest first; none for an unknown conversation. */
    show: (conversationId: string): Turn[] => store.sql<TurnRow, [string]>(rowsOfOne).all(conversationId).map(turnOfRow),
    /** Yields one JSON line per turn row, oldest first, of one conversation or of all. */
    *exportJsonl(conversationId?: string): Generator<string> {
      const rows =
        conversationId === undefined
          ? store.sql<TurnRow, []>(`SELECT ${turnColumns} FROM turns ORDER BY id`).iterate()
          : store.sql<TurnRow, [string]>(rowsOfOne).iterate(conversationId)
      for (const row of rows) yield `${JSON.stringify(turnOfRow(row))}\n`
    },
    /** Tells whether the conversation has a turn that was not cleared. */
    has: (conversationId: string) => store.sql('SELECT 1 FROM conversations WHERE conversation_id = ?').get(conversationId) !== null,
    count: () => store.sql<{ count: number }, []>('SELECT count(*) AS count FROM conversations').get()?.count ?? 0,
    /** Returns the folder where the conversation began; undefined for one that is older than this field. */
    folderOf(conversationId: string): string | undefined {
      const select = 'SELECT folder FROM runs WHERE conversation_id = ? AND folder IS NOT NULL ORDER BY rowid LIMIT 1'
      return store.sql<{ folder: string }, [string]>(select).get(conversationId)?.folder
    },
    /** Returns the most recently used conversation that began in this folder; nobody continues that of a check. */
    latestIn(folder: string): string | undefined {
      const select = `SELECT conversation_id AS id FROM runs WHERE folder = ? AND channel <> 'check'
        AND EXISTS (SELECT 1 FROM conversations WHERE conversation_id = runs.conversation_id) ORDER BY rowid DESC LIMIT 1`
      return store.sql<{ id: string }, [string]>(select).get(folder)?.id
    },
  }
}

/** Adds a turn row and updates its conversation's line; the word index follows later. Call it inside the journal's transaction. */
export function addTurn(store: Store, turn: Turn, entry: EntryPosition): void {
  const { lastInsertRowid } = insertValues(store, turnValues(turn, entry))
  enter(store, turn, entry)
  // The index is written for many turns at once, because that is cheaper.
  if (Number(lastInsertRowid) % mostBehind === 0) catchUp(store)
}

type EntryPosition = { readonly seq: number; readonly at: number }

/** Inserts values as `turnValues` returns them. */
export function insertValues(store: Store, values: readonly (string | number | null)[]) {
  return store.run(`INSERT INTO turns(journal_seq, run_id, ${turnColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, ...values)
}

/** Returns journal_seq, run_id, and the columns of `turnColumns`, as stored in the table. */
export function turnValues(turn: Turn, { seq, at }: EntryPosition): readonly (string | number | null)[] {
  const { conversation_id, turn_id, role, content, tool_calls, tool_results, provider, model, metadata } = turn
  const texts = [json(tool_calls), json(tool_results), provider, model, JSON.stringify(metadata)]
  return [seq, typeof metadata.run_id === 'string' ? metadata.run_id : '', conversation_id, turn_id, at, role, content, ...texts]
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
export function enter(store: Store, turn: TurnLine, place: EntryPosition): void {
  const { conversation_id: id } = turn
  const line = store.sql<ConversationLine, [string]>(`SELECT ${lineColumns} FROM conversations WHERE conversation_id = ?`).get(id)
  insertLine(store, id, enterLine(line ?? undefined, turn, place))
}

export const lineColumns = 'started, updated, turns, title, last_seq AS lastSeq'

export function insertLine(store: Store, id: string, { started, updated, turns, title, lastSeq }: ConversationLine): void {
  const insert = `INSERT INTO conversations(conversation_id, started, updated, turns, title, last_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
       ON CONFLICT DO UPDATE SET updated = ?3, turns = ?4, title = ?5, last_seq = ?6`
  store.run(insert, id, started, updated, turns, title, lastSeq)
}

export function turnOfRow({
  conversation_id,
  turn_id,
  at,
  role,
  content,
  tool_calls,
  tool_results,
  provider,
  model,
  metadata,
}: TurnRow): Turn {
  const [calls, results] = [JSON.parse(tool_calls ?? 'null'), JSON.parse(tool_results ?? 'null')]
  const own = { tool_calls: calls, tool_results: results, provider, model, metadata: JSON.parse(metadata) }
  return { conversation_id, turn_id, timestamp: new Date(at).toISOString(), role, content, ...own }
}

function json(value: Turn['tool_calls']): string | null {
  return value === null ? null : JSON.stringify(value)
}

function titleOf(content: string): string {
  const line = flat(content.slice(0, 1000).trim())
  return line.length > titleLength ? `${line.slice(0, titleLength - 1).toWellFormed()}…` : line
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
