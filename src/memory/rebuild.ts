/** What is made from the journal (turns, conversations, the search index), held against the journal or made anew from it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { canonical } from '../kit/json.ts'
import type { RunIdentity } from '../runtime/port.ts'
import { insertTurn, type TurnRow, turnColumns, turnOfRow } from './conversations/conversations.ts'
import { alteredSummary, disprovedSummary, dropDisproved } from './conversations/summaries.ts'
import { catchUp, indexedSeq, indexThrough } from './conversations/word-index.ts'
import type { JournalEntry } from './journal/journal-entry.ts'
import { projectTurns, turnOf } from './journal/turns.ts'
import { openStore, type Store } from './store.ts'

/** SHA-256 in hex over all rows in canonical JSON, of what is there and of what the journal says. `difference` names the first that differs. */
export type ProjectionCheck = {
  readonly equal: boolean
  readonly live: string
  readonly rebuilt: string
  readonly turns: number
  readonly difference?: string
}

export type Rebuilt = { readonly ok: true; readonly turns: number } | { readonly ok: false; readonly message: string }

export type Projections = {
  /** Makes them anew in a scratch file beside the database, of one moment; others may go on writing. */
  check(): ProjectionCheck
  /** Deletes them and makes them anew, or leaves all as it was. Summaries that the journal disproves go too. Others wait meanwhile. */
  rebuild(): Rebuilt
  /** Whether the turns of one run are what its journal says. @returns the first difference */
  differenceIn(run: RunIdentity): string | undefined
  /** Whether the summaries of a conversation, which are no projection, are as they were written. @returns the first that is not */
  alteredSummary(conversationId: string): string | undefined
}

export function createProjections(store: Store): Projections {
  function check(): ProjectionCheck {
    store.script(`CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, turns_fts, instance)`)
    return inScratch(store.path, (scratch) => {
      scratch.script(`CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, turns_fts, instance)`)
      catchUp(store)
      store.script('BEGIN')
      try {
        const filled = scratch.write(() => fill(store, scratch))
        indexThrough(scratch, indexedSeq(store))
        return filled.ok
          ? withSummaries(store, compare(store, scratch))
          : { equal: false, live: '', rebuilt: '', turns: 0, difference: filled.message }
      } finally {
        store.script('ROLLBACK')
      }
    })
  }

  function rebuild(): Rebuilt {
    try {
      return store.write(() => {
        store.script(`INSERT INTO turns_fts(turns_fts) VALUES ('delete-all'); DELETE FROM turns; DELETE FROM conversations`)
        const filled = fill(store, store)
        if (!filled.ok) throw new Unreadable(filled.message)
        catchUp(store)
        dropDisproved(store)
        return filled
      })
    } catch (error) {
      if (error instanceof Unreadable) return { ok: false, message: error.message }
      throw error
    }
  }

  function differenceIn(run: RunIdentity): string | undefined {
    const rows = store.sql<JournalRow, [string]>(`SELECT ${entryColumns} FROM journal WHERE run_id = ? ORDER BY seq`).all(run.runId)
    const entries = rows.map(entryOf)
    const unread = entries.indexOf(undefined)
    if (unread >= 0) return `journal entry ${rows[unread]?.seq} of ${run.runId} is no JSON`
    const told = projectTurns(
      run,
      entries.flatMap((entry) => entry ?? []),
    )
    const kept = store.sql<TurnRow, [string]>(`SELECT ${turnColumns} FROM turns WHERE run_id = ? ORDER BY journal_seq, id`)
    const shown = kept.all(run.runId).map((row) => safely(() => canonical(turnOfRow(row))) ?? 'no JSON')
    const at = Array.from({ length: Math.max(told.length, shown.length) }, (_, each) => each).find(
      (each) => told[each] === undefined || canonical(told[each]) !== shown[each],
    )
    return at === undefined ? undefined : `turn row ${at + 1} of ${run.runId} is not what its journal says`
  }

  return { check, rebuild, differenceIn, alteredSummary: (conversationId) => alteredSummary(store, conversationId)?.message }
}

/** A summary cannot be made anew here, only held against the journal it came from. */
function withSummaries(store: Store, found: ProjectionCheck): ProjectionCheck {
  const difference = found.difference ?? disprovedSummary(store)?.message
  return difference === undefined ? found : { ...found, equal: false, difference }
}

class Unreadable extends Error {}

type JournalRow = Omit<JournalEntry, 'body'> & { readonly body: string }

const entryColumns = 'seq, kind, type, at, body'

/** Undefined for a body that is no JSON: nobody of ours wrote that. */
function entryOf(row: JournalRow): JournalEntry | undefined {
  return safely(() => ({ ...row, body: JSON.parse(row.body) }))
}

function safely<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Every turn row that the journal of `from` makes, written into `into`. */
function fill(from: Store, into: Store): Rebuilt {
  const rows = from.sql<JournalRow & RunIdentity, []>(
    `SELECT ${entryColumns}, run_id AS runId, conversation_id AS conversationId, turn_id AS turnId, provider, runs.model, channel
     FROM journal JOIN runs USING (run_id) ORDER BY seq`,
  )
  const tools = new Map<string, string>()
  let turns = 0
  for (const row of rows.iterate()) {
    const entry = entryOf(row)
    if (!entry) return { ok: false, message: `journal entry ${row.seq} of ${row.runId} is no JSON` }
    const turn = safely(() => {
      if (entry.kind === 'intent') note(tools, row.runId, entry)
      return { made: turnOf(row, entry, (callId) => tools.get(`${row.runId}\n${callId}`)) }
    })
    if (!turn) return { ok: false, message: `journal entry ${row.seq} of ${row.runId} is not what a run writes` }
    if (!turn.made) continue
    insertTurn(into, turn.made, entry)
    turns += 1
  }
  return { ok: true, turns }
}

function note(tools: Map<string, string>, runId: string, { body }: JournalEntry): void {
  const act: { id?: unknown; call?: { name?: unknown } } = Object(body)
  tools.set(`${runId}\n${String(act.id)}`, String(act.call?.name))
}

type Piece = { readonly what: string; readonly text: string }

/** All that is projected, in an order that does not depend on how it came to be. */
function* piecesOf(store: Store): Generator<Piece> {
  const conversations = store.sql<{ conversation_id: string }, []>('SELECT * FROM conversations ORDER BY conversation_id')
  for (const row of conversations.iterate()) yield { what: `conversation ${row.conversation_id}`, text: canonical(row) }
  const turns = store.sql<{ journal_seq: number }, []>(`SELECT journal_seq, run_id, ${turnColumns} FROM turns ORDER BY journal_seq, id`)
  for (const row of turns.iterate()) yield { what: `the turn of journal entry ${row.journal_seq}`, text: canonical(row) }
  const words = store.sql<{ term: string; journal_seq: number | null }, []>(
    'SELECT term, journal_seq, "offset" FROM temp.words LEFT JOIN turns ON turns.id = words.doc',
  )
  for (const row of words.iterate())
    yield { what: `the word "${row.term}" in the index (journal entry ${row.journal_seq ?? 'none'})`, text: canonical(row) }
}

function compare(store: Store, scratch: Store): ProjectionCheck {
  const [live, rebuilt] = [new Bun.CryptoHasher('sha256'), new Bun.CryptoHasher('sha256')]
  const [here, there] = [piecesOf(store), piecesOf(scratch)]
  const state: { difference?: string; turns: number } = { turns: 0 }
  for (;;) {
    const [mine, right] = [nextOf(here), nextOf(there)]
    if (!mine && !right) break
    if (mine) live.update(`${mine.text}\n`)
    if (right) rebuilt.update(`${right.text}\n`)
    if (right?.what.startsWith('the turn of')) state.turns += 1
    if (mine?.text !== right?.text) state.difference ??= differenceOf(mine, right)
  }
  const { difference, turns } = state
  return {
    equal: difference === undefined,
    live: live.digest('hex'),
    rebuilt: rebuilt.digest('hex'),
    turns,
    ...(difference ? { difference } : {}),
  }
}

function nextOf(pieces: Generator<Piece>): Piece | undefined {
  const { value, done } = pieces.next()
  return done ? undefined : value
}

function differenceOf(mine: Piece | undefined, right: Piece | undefined): string {
  if (!mine || (right && right.what < mine.what && right.what !== mine.what)) return `${right?.what} is missing`
  if (!right || right.what !== mine.what) return `${mine.what} is not in the journal`
  return `${mine.what} is not what the journal says`
}

/** On the same disk as the database, as private as that, and gone afterwards. */
function inScratch<T>(path: string, use: (scratch: Store) => T): T {
  const folder = mkdtempSync(join(dirname(path), 'rebuild-'))
  try {
    const opened = openStore({ path: join(folder, 'scratch.sqlite'), log: () => {} })
    if (!opened.ok) throw new Error(opened.failure.message)
    try {
      return use(opened.store)
    } finally {
      opened.store.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
