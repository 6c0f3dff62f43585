/** Searches all turns: ranks by words, prefers newer turns among similar ones, and searches for substrings where words find nothing. */

import { succeeds } from '../../kit/errors.ts'
import { flat } from '../../kit/text.ts'
import type { Clock } from '../../runtime/port.ts'
import type { Role } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { type Conversation, catchUp, columns, conversationsOfToken } from './conversations.ts'

/** `at` in milliseconds since 1970; a higher `score` is better, and comparable within one search only. */
export type Hit = {
  readonly conversationId: string
  readonly turnId: string
  readonly role: Role
  readonly at: number
  readonly snippet: string
  readonly score: number
}

export type SearchRequest = {
  /** Plain words: quotes and operators in it are text. Only the first 1,000 characters and 32 words count. */
  readonly query: string
  readonly limit?: number
  /** The id of the turn that searches, because the search would always find that turn. */
  readonly exceptTurn?: string
  /** The only conversation that may be found. */
  readonly within?: string
  /** Only conversations that the token of this id began may be found. */
  readonly ownedBy?: string | undefined
}

type MatchedTurn = Omit<Hit, 'snippet' | 'score'> & { readonly id: number; readonly head: string }
type Query = { readonly text: string; readonly chunks: readonly string[]; readonly words: readonly string[] }
/** `found` counts the rows with this term, up to the cap. */
type Term = { readonly text: string; readonly found: number }

/** Scoring every match is the slow part, so the index ranks no more rows than this. */
const rankCap = 2000
const recentCap = 300
/** How many of the newest rows the substring search reads. */
const substringRows = 20_000
const keep = 50
const headLength = 4000
const halfLifeMs = 30 * 86_400_000

export function createSearch(store: Store, now: Clock): (request: SearchRequest) => Hit[] {
  return ({ query, limit = 10, exceptTurn, within, ownedBy }) => {
    const input = parse(query)
    const scope = scopeOf(within, ownedBy)
    const whole = isWhole(store)
    const ranks = new Map<number, number>()
    const terms = weigh(store, input.chunks)
    for (const [id, rank] of byWords({ store, scope }, terms)) ranks.set(id, rank)
    if (!whole || ranks.size === 0 || needsSubstring(input.text))
      for (const id of bySubstring({ store, scope }, input.chunks)) ranks.set(id, ranks.get(id) ?? 0)
    const rows = fetch(store, [...ranks.keys()]).filter(
      ({ turnId, conversationId }) => turnId !== exceptTurn && conversationId === (within ?? conversationId),
    )
    const total = store.sql<{ n: number }, []>('SELECT coalesce(max(id), 0) AS n FROM turns').get()?.n ?? 0
    const score = scorer({ input, terms, total, now: now() })
    return rows
      .map((row) => ({ row, score: score(row, ranks.get(row.id) ?? 0) }))
      .sort((a, b) => b.score - a.score || b.row.at - a.row.at || b.row.id - a.row.id)
      .slice(0, limit)
      .map((found) => hit(store, input, found))
  }
}

/** Restricts a query to some conversations: a condition on the row's id, and its parameter. */
type SearchScope = { readonly where: (id: string) => string; readonly args: readonly string[] }
type Scoped = { readonly store: Store; readonly scope: SearchScope }

function scopeOf(within: string | undefined, ownedBy: string | undefined): SearchScope {
  const conditions = [
    ...(within === undefined ? [] : ['conversation_id = ?']),
    ...(ownedBy === undefined ? [] : [`conversation_id IN (${conversationsOfToken})`]),
  ]
  if (conditions.length === 0) return { where: () => '', args: [] }
  const ids = `SELECT id FROM turns WHERE run_id IN (SELECT run_id FROM runs WHERE ${conditions.join(' AND ')})`
  return { where: (id) => `AND ${id} IN (${ids})`, args: [within, ownedBy].filter((each) => each !== undefined) }
}

/**
 * Tells whether the index covers all turns. It may lag when the file cannot be written (the disk is full, another process writes for long);
 * the search then reads the texts too.
 */
function isWhole(store: Store): boolean {
  return succeeds(() => catchUp(store))
}

function parse(query: string): Query {
  const text = query
    .slice(0, 1000)
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
  const chunks = [...new Set(text.split(/\s+/u).filter(Boolean))].slice(0, 32)
  const words = [...new Set(fold(chunks.join(' ')).match(/[\p{L}\p{N}]+/gu) ?? [])].slice(0, 32)
  return { text, chunks, words }
}

/** The index treats a chunk such as `foo.bar` as a phrase; a phrase that occurs nowhere is split into words. Rarest first. */
function weigh(store: Store, chunks: readonly string[]): Term[] {
  const counted = chunks.flatMap((chunk) => {
    const words = chunk.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
    const whole = words.length > 0 ? count(store, chunk) : { text: chunk, found: 0 }
    return whole.found > 0 || words.length < 2 ? [whole] : words.map((word) => count(store, word))
  })
  return counted.filter(({ found }) => found > 0).sort((a, b) => a.found - b.found)
}

function count(store: Store, text: string): Term {
  const counting = store.sql<{ n: number }, [string, number]>(
    'SELECT count(*) AS n FROM (SELECT 1 FROM turns_fts WHERE turns_fts MATCH ? LIMIT ?)',
  )
  return { text, found: counting.get(quoted(text), rankCap + 1)?.n ?? 0 }
}

/** Ranks rare terms with the index while their rows stay below the cap; if all terms are common, takes the newest rows with all of them. */
function byWords(scoped: Scoped, terms: readonly Term[]): (readonly [id: number, rank: number])[] {
  const rare = terms.filter((_, at) => terms.slice(0, at + 1).reduce((sum, { found }) => sum + found, 0) <= rankCap)
  if (rare.length > 0) return ranked(scoped, rare.map(({ text }) => quoted(text)).join(' OR '))
  if (terms.length === 0) return []
  const together = recent(scoped, terms.map(({ text }) => quoted(text)).join(' AND '))
  return together.length >= keep || terms.length === 1
    ? together
    : [...recent(scoped, terms.map(({ text }) => quoted(text)).join(' OR ')), ...together]
}

function ranked({ store, scope }: Scoped, match: string): (readonly [number, number])[] {
  const best = store.sql<{ id: number; rank: number }, (string | number)[]>(
    `SELECT rowid AS id, bm25(turns_fts) AS rank FROM turns_fts WHERE turns_fts MATCH ? ${scope.where('rowid')} ORDER BY rank LIMIT ?`,
  )
  return best.all(match, ...scope.args, keep).map(({ id, rank }) => [id, -rank] as const)
}

function recent({ store, scope }: Scoped, match: string): (readonly [number, number])[] {
  const newest = store.sql<{ id: number }, (string | number)[]>(
    `SELECT rowid AS id FROM turns_fts WHERE turns_fts MATCH ? ${scope.where('rowid')} ORDER BY rowid DESC LIMIT ?`,
  )
  return newest.all(match, ...scope.args, recentCap).map(({ id }) => [id, 0] as const)
}

/** Detects scripts without spaces, and characters that the index ignores ("c++", "$x"). */
function needsSubstring(text: string): boolean {
  return /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]|[^\p{L}\p{N}\p{M}\s"'’.,;:!?()-]/u.test(
    text,
  )
}

/**
 * Returns rows that contain every chunk literally, among the newest rows and among rows with a word that starts like a chunk. Ignores case
 * for ASCII, and for other letters if the chunk has one case only. The limits keep a word that occurs nowhere from costing a scan of years
 * of texts.
 */
function bySubstring({ store, scope }: Scoped, chunks: readonly string[]): readonly number[] {
  const patterns = chunks
    .slice(0, 8)
    .map((chunk) => [chunk.toLowerCase(), chunk.toUpperCase()].map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`))
  if (patterns.length === 0) return []
  const where = patterns.map(() => `(content LIKE ? ESCAPE '\\' OR content LIKE ? ESCAPE '\\')`).join(' AND ')
  const newest = store.sql<{ id: number }, string[]>(
    `SELECT id FROM turns WHERE id > (SELECT max(id) FROM turns) - ${substringRows} AND ${where} ${scope.where('id')} ORDER BY id DESC LIMIT ${keep}`,
  )
  const older = store.sql<{ id: number }, string[]>(
    `SELECT id FROM turns WHERE id IN (SELECT value FROM json_each(?)) AND ${where} ${scope.where('id')} ORDER BY id DESC LIMIT ${keep}`,
  )
  const begun = JSON.stringify(beginning({ store, scope }, chunks))
  return [...newest.all(...patterns.flat(), ...scope.args), ...older.all(begun, ...patterns.flat(), ...scope.args)].map(({ id }) => id)
}

/** Returns the newest rows with words that start like all words of the query. */
function beginning({ store, scope }: Scoped, chunks: readonly string[]): readonly number[] {
  const words = chunks.flatMap((chunk) => chunk.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [])
  if (words.length === 0) return []
  const match = words.map((word) => `${quoted(word)} *`).join(' AND ')
  const rows = store.sql<{ id: number }, string[]>(
    `SELECT rowid AS id FROM turns_fts WHERE turns_fts MATCH ? ${scope.where('rowid')} ORDER BY rowid DESC LIMIT ${rankCap}`,
  )
  return rows.all(match, ...scope.args).map(({ id }) => id)
}

function fetch(store: Store, ids: readonly number[]): MatchedTurn[] {
  return store
    .sql<MatchedTurn, [string]>(
      `SELECT id, conversation_id AS conversationId, turn_id AS turnId, role, at, substr(content, 1, ${headLength}) AS head
       FROM turns WHERE id IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(ids))
}

type Scoring = { readonly input: Query; readonly terms: readonly Term[]; readonly total: number; readonly now: number }

/** Adds to the index's rank the weight of words it did not rank, a bonus for the exact text, and a bonus for newer turns. */
function scorer({ input, terms, total, now }: Scoring): (row: MatchedTurn, rank: number) => number {
  const pattern = finder(input.words)
  const weights = new Map(terms.map(({ text, found }) => [fold(text), Math.log(1 + total / Math.max(found, 1))]))
  const exact = fold(input.text)
  return ({ head, at }, rank) => {
    const folded = fold(head)
    const counts = new Map<string, number>()
    for (const [word] of pattern ? folded.matchAll(pattern) : []) counts.set(word, (counts.get(word) ?? 0) + 1)
    const words = [...counts].reduce((sum, [word, times]) => sum + (weights.get(word) ?? 0.5) * (times / (times + 1.2)), 0)
    const likeness = (rank + words + 0.1) * (exact !== '' && folded.includes(exact) ? 1.5 : 1)
    return likeness * (1 + 0.5 * 2 ** (-Math.max(0, now - at) / halfLifeMs))
  }
}

function hit(store: Store, input: Query, { row, score }: { readonly row: MatchedTurn; readonly score: number }): Hit {
  const { id, conversationId, turnId, role, at, head } = row
  const whole = store.sql<{ content: string }, [number]>(`SELECT substr(content, 1, 200000) AS content FROM turns WHERE id = ?`)
  const content = head.length < headLength ? head : (whole.get(id)?.content ?? head)
  return { conversationId, turnId, role, at, snippet: snippet(content, input.words, [input.text]), score }
}

/** Quotes a string for the index's query language: everything within quotes is text. */
function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

const before = 60
const width = 200

/**
 * Returns lower case without accents. A composed letter stays one character long, so that offsets in the result are offsets in the text.
 */
function fold(text: string): string {
  const lower = text.toLowerCase()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole ASCII range is meant
  return /^[\x00-\x7f]*$/.test(lower) ? lower : lower.normalize('NFD').replace(/\p{M}/gu, '')
}

/**
 * Matches words at their start, so that "search" also finds "searching". Words contain only letters and digits, so nothing needs escaping.
 */
function finder(words: readonly string[]): RegExp | undefined {
  const plain = words.map(fold).filter((word) => /^[\p{L}\p{N}]+$/u.test(word))
  return plain.length === 0 ? undefined : new RegExp(`(?<![\\p{L}\\p{N}])(?:${plain.join('|')})`, 'gu')
}

/** Returns about 200 characters of the text on one line, around the first needle found, or else from the start. */
export function snippet(content: string, words: readonly string[], needles: readonly string[]): string {
  const folded = fold(content)
  const exact = needles.map((needle) => folded.indexOf(fold(needle))).find((at) => at >= 0)
  const at = Math.max(exact ?? finder(words)?.exec(folded)?.index ?? finder(stems(words))?.exec(folded)?.index ?? 0, 0)
  const start = at <= before ? 0 : at - before
  const piece = flat(content.slice(start, start + width).toWellFormed()).trim()
  return `${start > 0 ? '…' : ''}${piece}${start + width < content.length ? '…' : ''}`
}

/** The index matches word stems; without its stemmer, a word without its ending is close enough to find the place. */
function stems(words: readonly string[]): string[] {
  return words.map((word) => word.slice(0, Math.max(4, word.length - 3)))
}

/** A conversation as a person chooses it. `firstWords`: the first question, shortened; `folder`: where it was begun. */
export type ConversationEntry = Conversation & { readonly firstWords: string; readonly folder: string | null }

/** `words`: each must be in the name, the first words, the folder or the id, in any case. */
export type ChoicesQuery = { readonly words?: string; readonly limit: number }

const folder = `(SELECT folder FROM runs WHERE runs.conversation_id = conversations.conversation_id AND folder IS NOT NULL ORDER BY rowid LIMIT 1)`

/** Returns the conversations that match, most recently used first. */
export function conversationChoices(store: Store, { words = '', limit }: ChoicesQuery): ConversationEntry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = store.sql<ConversationEntry & { position?: number }, []>(
    `SELECT ${columns}, conversations.title AS firstWords, ${folder} AS folder FROM conversations ORDER BY last_seq DESC`,
  )
  const found: ConversationEntry[] = []
  for (const { position: _, ...row } of rows.iterate()) {
    const text = `${row.title} ${row.firstWords} ${row.folder ?? ''} ${row.conversationId}`.toLowerCase()
    if (wanted.every((word) => text.includes(word))) found.push(row)
    if (found.length === limit) break
  }
  return found
}
