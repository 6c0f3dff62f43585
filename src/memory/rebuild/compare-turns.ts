/** Compares the conversation tables row by row with the rows rebuilt from the journal. */

import { atEnd, attempt, unlessCode } from '../../kit/errors.ts'
import { canonical } from '../../kit/json.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { type ConversationLine, catchUp, enterLine, lineColumns, turnColumns, turnValues } from '../conversations/conversations.ts'
import { entryColumns, entryOf, type JournalEntry, type JournalRow } from '../journal/journal-entry.ts'
import { turnOf } from '../journal/turns.ts'
import type { Store } from '../store.ts'

type Comparison = { readonly live: string; readonly rebuilt: string; readonly turns: number; readonly difference?: string }

type LiveRow = { readonly journal_seq: number; readonly [column: string]: string | number | null }

const names = ['journal_seq', 'run_id', ...turnColumns.split(', ')]

/** Compares everything but the word index. Call it within a transaction, so that all rows are from one moment. @throws Unreadable */
function compareTurns(store: Store, fromJournal: JournalTurns): Comparison {
  const [live, rebuilt] = [new Bun.CryptoHasher('sha256'), new Bun.CryptoHasher('sha256')]
  const state: { turns: number; difference?: string } = { turns: 0 }
  const both = (mine: string | undefined, right: string | undefined, what: string) => {
    if (mine !== undefined) live.update(`${mine}\n`)
    if (right !== undefined) rebuilt.update(`${right}\n`)
    if (mine !== right) state.difference ??= differenceOf(mine, right, what)
  }
  const rows = store.sql<LiveRow, []>(`SELECT journal_seq, run_id, ${turnColumns} FROM turns ORDER BY journal_seq, id`).iterate()
  const [here, there] = [rows, fromJournal.turns[Symbol.iterator]()]
  let [mine, right] = [nextOf(here), nextOf(there)]
  while (mine || right) {
    const [at, rightAt] = [mine?.journal_seq ?? Number.POSITIVE_INFINITY, right ? Number(right[0]) : Number.POSITIVE_INFINITY]
    const what = `the turn of journal entry ${Math.min(at, rightAt)}`
    const [current, due] = [at <= rightAt ? mine : undefined, rightAt <= at ? right : undefined]
    both(current && textOfRow(current, due), due && textOf(due), what)
    if (due) state.turns += 1
    if (current) mine = nextOf(here)
    if (due) right = nextOf(there)
  }
  for (const [id, current] of linesOf(store)) both(lineText(current), lineText(fromJournal.conversations.get(id)), `conversation ${id}`)
  const lost = [...fromJournal.conversations.keys()].find((id) => !has(store, id))
  if (lost !== undefined) both(undefined, lineText(fromJournal.conversations.get(lost)), `conversation ${lost}`)
  return { live: live.digest('hex'), rebuilt: rebuilt.digest('hex'), ...state }
}

/** Runs the whole comparison: the tables at one moment, then the word index with its own check. */
export function compare(store: Store, fromJournal: JournalTurns): Comparison {
  store.script('BEGIN')
  const found = (() => {
    using _end = atEnd(() => store.script('ROLLBACK'))
    return compareTurns(store, fromJournal)
  })()
  const difference = found.difference ?? differenceInWords(store)
  return difference === undefined ? found : { ...found, difference }
}

function nextOf<T>(rows: Iterator<T>): T | undefined {
  const { value, done } = rows.next()
  return done ? undefined : value
}

function textOf(values: TurnValues): string {
  return values.map((value) => value ?? '\u0000').join('\u001f')
}

/** Returns the expected spelling if the values are equal: older versions wrote the members of an object in another order. */
function textOfRow(row: LiveRow, due: TurnValues | undefined): string {
  const values = names.map((name) => row[name] ?? null)
  const text = textOf(values)
  if (due === undefined || text === textOf(due)) return text
  return values.every((value, at) => saysSame(value, due[at] ?? null)) ? textOf(due) : text
}

function saysSame(value: string | number | null, due: string | number | null): boolean {
  if (value === due) return true
  if (typeof value !== 'string' || typeof due !== 'string') return false
  // The database stores no lone surrogates.
  if (value === due.toWellFormed()) return true
  return attempt(() => canonical(JSON.parse(value)) === canonical(JSON.parse(due))) ?? false
}

function* linesOf(store: Store): Generator<readonly [string, ConversationLine]> {
  const rows = store.sql<ConversationLine & { readonly id: string }, []>(
    `SELECT conversation_id AS id, ${lineColumns} FROM conversations ORDER BY conversation_id`,
  )
  for (const { id, ...line } of rows.iterate()) yield [id, line]
}

function lineText(line: ConversationLine | undefined): string | undefined {
  return line && [line.started, line.updated, line.turns, line.title.toWellFormed(), line.lastSeq].join('\u001f')
}

function has(store: Store, id: string): boolean {
  return store.sql('SELECT 1 FROM conversations WHERE conversation_id = ?').get(id) !== null
}

function differenceOf(mine: string | undefined, right: string | undefined, what: string): string {
  if (mine === undefined) return `${what} is missing`
  return right === undefined ? `${what} is not in the journal` : `${what} is not what the journal says`
}

/**
 * Compares the word index with the texts of the turns: by its own check first, and word by word only if that fails.
 * @returns a description of the first word that differs.
 * @throws SQLiteError for file errors
 */
function differenceInWords(store: Store): string | undefined {
  return store.write(() => {
    catchUp(store)
    return isSound(store) ? undefined : firstWrongWord(store)
  })
}

function isSound(store: Store): boolean {
  // Rank 1 compares the index with the table of texts.
  const check = `INSERT INTO turns_fts(turns_fts, rank) VALUES ('integrity-check', 1)`
  return unlessCode(['SQLITE_CORRUPT_VTAB'], () => store.script(check) ?? true) ?? false
}

const terms = `SELECT term, doc, "offset" FROM temp.terms`
const rightTerms = `SELECT term, doc, "offset" FROM temp.right_terms`

function firstWrongWord(store: Store): string {
  store.script(`
    CREATE VIRTUAL TABLE temp.right_fts USING fts5(content, content='', tokenize='porter unicode61 remove_diacritics 2');
    INSERT INTO temp.right_fts(rowid, content) SELECT id, content FROM turns;
    CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, turns_fts, instance);
    CREATE VIRTUAL TABLE temp.right_terms USING fts5vocab(temp, right_fts, instance)`)
  using _end = atEnd(() => store.script('DROP TABLE temp.terms; DROP TABLE temp.right_terms; DROP TABLE temp.right_fts'))
  const planted = first(store, `${terms} EXCEPT ${rightTerms}`)
  if (planted) return `${planted} is not in the journal`
  const lost = first(store, `${rightTerms} EXCEPT ${terms}`)
  return lost ? `${lost} is missing` : 'the index of words is damaged'
}

function first(store: Store, difference: string): string | undefined {
  const found = store.sql<{ term: string; seq: number | null }, []>(
    `SELECT term, journal_seq AS seq FROM (${difference} LIMIT 1) AS one LEFT JOIN turns ON turns.id = one.doc`,
  )
  const row = found.get()
  return row ? `the word "${row.term}" in the index (journal entry ${row.seq ?? 'none'})` : undefined
}

/** The values of one row in the order of the table's columns: journal_seq, run_id, and `turnColumns`. */
type TurnValues = readonly (string | number | null)[]

type JournalTurns = {
  /** @throws Unreadable for an entry that no run writes */
  readonly turns: Iterable<TurnValues>
  /** Complete after all turns were read. */
  readonly conversations: ReadonlyMap<string, ConversationLine>
}

export class Unreadable extends Error {}

type EntryRow = JournalRow & RunIdentity

/** Computes every turn row from the journal, in order, and the line of each conversation. @param onEntry called with each entry's number */
export function turnsFromJournal(store: Store, onEntry: (seq: number) => void = () => {}): JournalTurns {
  const conversations = new Map<string, ConversationLine>()

  function* turns(): Generator<TurnValues> {
    const rows = store.sql<EntryRow, []>(
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

function turnIn(row: EntryRow, tools: Map<string, string>) {
  const entry = entryOf(row)
  if (!entry) throw new Unreadable(`journal entry ${row.seq} of ${row.runId} is not valid JSON`)
  try {
    if (entry.kind === 'intent') note(tools, row.runId, entry)
    return turnOf(row, entry, (callId) => tools.get(`${row.runId}\n${callId}`))
  } catch {
    throw new Unreadable(`journal entry ${row.seq} of ${row.runId} is not what a run writes`)
  }
}

function note(tools: Map<string, string>, runId: string, { body }: JournalEntry): void {
  const act: { id?: unknown; call?: { name?: unknown } } = Object(body)
  tools.set(`${runId}\n${String(act.id)}`, String(act.call?.name))
}
