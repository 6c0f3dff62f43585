/** Compares the conversation tables row by row with the rows rebuilt from the journal. */

import { canonical } from '../../kit/json.ts'
import { type ConversationLine, lineColumns, turnColumns } from '../conversations/conversations.ts'
import type { ToldTurns, TurnValues } from '../journal-turns.ts'
import type { Store } from '../store.ts'
import { differenceInWords } from './check-words.ts'

export type Comparison = { readonly live: string; readonly rebuilt: string; readonly turns: number; readonly difference?: string }

type LiveRow = { readonly journal_seq: number; readonly [column: string]: string | number | null }
type State = { turns: number; difference?: string }

const names = ['journal_seq', 'run_id', ...turnColumns.split(', ')]

/** Compares everything but the word index. Call it within a transaction, so that all rows are from one moment. @throws Unreadable */
export function compareTurns(store: Store, told: ToldTurns): Comparison {
  const [live, rebuilt] = [new Bun.CryptoHasher('sha256'), new Bun.CryptoHasher('sha256')]
  const state: State = { turns: 0 }
  const both = (mine: string | undefined, right: string | undefined, what: string) => {
    if (mine !== undefined) live.update(`${mine}\n`)
    if (right !== undefined) rebuilt.update(`${right}\n`)
    if (mine !== right) state.difference ??= differenceOf(mine, right, what)
  }
  const rows = store.sql<LiveRow, []>(`SELECT journal_seq, run_id, ${turnColumns} FROM turns ORDER BY journal_seq, id`).iterate()
  const [here, there] = [rows, told.turns[Symbol.iterator]()]
  let [mine, right] = [nextOf(here), nextOf(there)]
  while (mine || right) {
    const [at, rightAt] = [mine?.journal_seq ?? Number.POSITIVE_INFINITY, right ? Number(right[0]) : Number.POSITIVE_INFINITY]
    const what = `the turn of journal entry ${Math.min(at, rightAt)}`
    const [kept, due] = [at <= rightAt ? mine : undefined, rightAt <= at ? right : undefined]
    both(kept && textOfRow(kept, due), due && textOf(due), what)
    if (due) state.turns += 1
    if (kept) mine = nextOf(here)
    if (due) right = nextOf(there)
  }
  for (const [id, kept] of linesOf(store)) both(lineText(kept), lineText(told.conversations.get(id)), `conversation ${id}`)
  const lost = [...told.conversations.keys()].find((id) => !has(store, id))
  if (lost !== undefined) both(undefined, lineText(told.conversations.get(lost)), `conversation ${lost}`)
  return { live: live.digest('hex'), rebuilt: rebuilt.digest('hex'), ...state }
}

/** Runs the whole comparison: the tables at one moment, then the word index with its own check. */
export function compare(store: Store, told: ToldTurns): Comparison {
  store.script('BEGIN')
  const found = (() => {
    try {
      return compareTurns(store, told)
    } finally {
      store.script('ROLLBACK')
    }
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
  try {
    return canonical(JSON.parse(value)) === canonical(JSON.parse(due))
  } catch {
    return false
  }
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
