/** Stores the summaries that a model wrote about older turns: the journal cannot recreate them, but it can disprove them. */

import { sha256 } from '../../kit/sha256.ts'
import { hashJson } from '../journal/receipt-draft.ts'
import type { Store } from '../store.ts'

/**
 * `through`: the journal number of the first entry of the last run it covers; it covers all earlier runs too. `turns` counts questions
 * since the beginning. Digests are SHA-256 in hex: of the source journal entries, and of the previous summary text.
 */
export type Summary = {
  readonly conversationId: string
  readonly through: number
  readonly turns: number
  readonly text: string
  readonly sourceDigest: string
  readonly previousDigest: string
  readonly model: string
  readonly at: number
}

type SummaryRow = Summary & { readonly id: number; readonly digest: string }

const columns = `id, conversation_id AS conversationId, through_position AS through, turns, text, source_digest AS sourceDigest,
  previous_digest AS previousDigest, model, at, digest`

/** Returns the newest unaltered summary; an altered one never reaches the model. */
export function latestSummary(store: Store, conversationId: string): Summary | undefined {
  const newest = store.sql<SummaryRow, [string]>(`SELECT ${columns} FROM summaries WHERE conversation_id = ? ORDER BY id DESC LIMIT 1`)
  const row = newest.get(conversationId)
  const found = row === null || isIntact(row) ? row : rowsOf(store, conversationId).findLast(isIntact)
  return found ? plain(found) : undefined
}

export function addSummary(store: Store, summary: Summary): void {
  const { conversationId, through, turns, text, sourceDigest, previousDigest, model, at } = summary
  const insert = `INSERT INTO summaries(conversation_id, through_position, turns, text, source_digest, previous_digest, model, at, digest)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  store.run(insert, conversationId, through, turns, text, sourceDigest, previousDigest, model, at, hashJson(plain(summary)))
}

/** Returns the position that orders the runs of a conversation; 0 comes before all. Undefined when the journal has no such entry. */
export function placeOf(store: Store, through: number): number | undefined {
  if (through === 0) return 0
  const found = store.sql<{ place: number }, [number]>('SELECT runs.rowid AS place FROM journal JOIN runs USING (run_id) WHERE seq = ?')
  return found.get(through)?.place
}

/** Hashes all journal entries of a conversation's runs, from after one place up to another. */
export function sourceDigest(
  store: Store,
  conversationId: string,
  { after, upTo }: { readonly after: number; readonly upTo: number },
): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const entries = store.sql<{ head: string; body: string }, [string, number, number]>(
    `SELECT json_array(seq, run_id, kind, type, at) AS head, body FROM runs JOIN journal USING (run_id)
     WHERE conversation_id = ? AND runs.rowid > ? AND runs.rowid <= ? ORDER BY runs.rowid, seq`,
  )
  for (const { head, body } of entries.iterate(conversationId, after, upTo)) hasher.update(`${head}${body}\n`)
  return hasher.digest('hex')
}

export type WrongSummary = { readonly id: number; readonly message: string }

/** Returns the first summary, of one conversation or of any, that was altered or is out of order. */
export function alteredSummary(store: Store, conversationId?: string): WrongSummary | undefined {
  const before = new Map<string, string>()
  for (const row of rowsOf(store, conversationId)) {
    const previous = digestOfText(before.get(row.conversationId) ?? '')
    if (!isIntact(row) || row.previousDigest !== previous) return wrong(row, 'is not what was written')
    before.set(row.conversationId, row.text)
  }
}

/** Returns the first altered summary, or else the first whose journal entries no longer match its digest. */
export function disprovedSummary(store: Store): WrongSummary | undefined {
  const altered = alteredSummary(store)
  if (altered) return altered
  const through = new Map<string, number>()
  for (const row of rowsOf(store)) {
    if (!isProved(store, row, through.get(row.conversationId) ?? 0))
      return wrong(row, 'was made from journal entries that are not as they were')
    through.set(row.conversationId, row.through)
  }
}

function isProved(store: Store, { conversationId, through, sourceDigest: digest }: SummaryRow, before: number): boolean {
  const [after, upTo] = [placeOf(store, before), placeOf(store, through)]
  return after !== undefined && upTo !== undefined && sourceDigest(store, conversationId, { after, upTo }) === digest
}

function wrong({ id, conversationId }: SummaryRow, what: string): WrongSummary {
  return { id, message: `summary ${id} of ${conversationId} ${what}` }
}

/**
 * Deletes each disproved summary and all later ones of that conversation, so that the model sees the turns again. Call it inside a
 * transaction.
 */
export function dropDisproved(store: Store): void {
  for (let found = disprovedSummary(store); found; found = disprovedSummary(store)) {
    const onward = 'DELETE FROM summaries WHERE id >= ?1 AND conversation_id = (SELECT conversation_id FROM summaries WHERE id = ?1)'
    store.run(onward, found.id)
  }
}

export function digestOfText(text: string): string {
  return sha256(text)
}

function rowsOf(store: Store, conversationId?: string): SummaryRow[] {
  return store
    .sql<SummaryRow, [string | null]>(`SELECT ${columns} FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY id`)
    .all(conversationId ?? null)
}

function isIntact({ digest, ...row }: SummaryRow): boolean {
  return digest === hashJson(plain(row))
}

function plain({ conversationId, through, turns, text, sourceDigest, previousDigest, model, at }: Summary): Summary {
  return { conversationId, through, turns, text, sourceDigest, previousDigest, model, at }
}
