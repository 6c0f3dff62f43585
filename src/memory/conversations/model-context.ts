/** Builds the messages of a conversation for the model: a summary of older turns, if any, and the newest complete turns that fit. */

import { pictureTokens, tokensOf } from '../../kit/content/tokens.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import type { Part, PictureRef } from '../../runtime/event.ts'
import { picturesIn } from '../../runtime/outcome.ts'
import type { Clock, Message } from '../../runtime/port.ts'
import { externalOf, shorteningIn } from '../../runtime/replay/external-entry.ts'
import { type Shortening, shorten } from '../../runtime/request/turn-messages.ts'
import { type Approval, type Approvals, createApprovals } from '../approval-table.ts'
import { copiedIn, copiedMessage, foreignLine, isPart } from '../journal/journal-entry.ts'
import type { Role } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { latestSummary, placeOf } from './summaries.ts'
import { summarySection } from './summary-words.ts'

/**
 * `omittedTurns` counts older turns that did not fit: tell the model or the person when it is not zero. `summarisedTurns` counts the turns
 * that the first message summarises.
 */
export type Context = {
  readonly messages: Message[]
  readonly omittedTurns: number
  readonly estimatedTokens: number
  readonly summarisedTurns?: number
  /** How many messages at the end belong to the turn that continues. */
  readonly openMessages?: number
}

type JournalledTurn = {
  readonly seq: number
  readonly type: string
  readonly role: Role
  readonly content: string
  readonly toolResults: string | null
  readonly body: string
}
type ToolMessage = Extract<Message, { role: 'tool' }>

const unanswered = 'No result: the run ended before this call was carried out.'

/** With `open` the latest turn continues: its history ends where it was interrupted, without results of these calls. */
type ReadContext = (conversationId: string, tokenBudget: number, open?: ReadonlySet<string>) => Context

/**
 * A turn is one run, or a run with those that continued it: the question, its replies and their results. It is included completely or
 * not at all, so no result loses its call; a call without a result gets one that says so. Call it before the new run begins, or the new
 * question is among the messages.
 */
export function createContext(store: Store, now: Clock, approvals: Pick<Approvals, 'get'> = createApprovals(store, { now })): ReadContext {
  const readTurn = createTurnCache(store, turnReader(store))
  return (conversationId, tokenBudget, open) => {
    const counted = store.sql<{ turns: number }, [string]>('SELECT turns FROM conversations WHERE conversation_id = ?')
    const turns = counted.get(conversationId)?.turns
    if (turns === undefined) return { messages: [], omittedTurns: 0, estimatedTokens: 0 }
    const summary = summaryThatFits(store, conversationId, tokenBudget)
    const newest: TurnMessages[] = []
    let tokens = summary.tokens
    for (const { runIds, started, single } of turnsOf(runsOf(store, conversationId, summary.place), readTurn)) {
      const isOpen = open !== undefined && !newest.some(({ messages }) => messages.length > 0)
      const { messages, tokens: more } = isOpen ? readTurn(runIds, open) : (single ?? readTurn(runIds))
      // The calls of a turn that continues have no results yet, so nothing may follow them.
      const late = isOpen ? [] : runIds.flatMap((each) => lateDecisions(store, approvals, each, now()))
      const all = more + estimateTokens(late.map(({ message }) => message))
      if (!isOpen && tokens + all > tokenBudget) break
      tokens += all
      newest.unshift({ started, messages, late })
    }
    const omittedTurns = turns - summary.turns - newest.filter(({ messages }) => messages.length > 0).length
    return {
      messages: [...summary.messages, ...inOrder(newest)],
      omittedTurns: Math.max(0, omittedTurns),
      estimatedTokens: tokens,
      ...(summary.turns > 0 ? { summarisedTurns: summary.turns } : {}),
      ...(open ? { openMessages: newest.findLast(({ messages }) => messages.length > 0)?.messages.length ?? 0 } : {}),
    }
  }
}

/** Reads a turn without a cache. */
export function turnReader(store: Store): ReadTurn {
  return (runIds, open) => {
    const parts = runIds.map((runId) => rowsOf(store, runId))
    const trims = runIds.flatMap((runId) => trimsOf(store, runId))
    const turn = messagesOfTurn(turnRows(parts, open !== undefined), trims, open)
    const messages = turn.length === 0 || open ? turn : [...turn, ...interruptionOf(store, runIds.at(-1) ?? '')]
    return { messages, tokens: estimateTokens(messages), isContinuation: isContinuation(store, runIds[0] ?? '', parts[0]) }
  }
}

type TurnMessages = { readonly started: number; readonly messages: readonly Message[]; readonly late: readonly LateDecision[] }

/**
 * Puts each late decision before the first turn that began after it, at the same place in every request, so that providers can cache the
 * beginning.
 */
function inOrder(newest: readonly TurnMessages[]): Message[] {
  const late = newest.flatMap((run) => run.late).toSorted((a, b) => a.at - b.at)
  const before = (started: number) => late.splice(0, late.findLastIndex(({ at }) => at < started) + 1).map(({ message }) => message)
  return [...newest.flatMap(({ started, messages }) => [...before(started), ...messages]), ...before(Number.POSITIVE_INFINITY)]
}

/** The summary of all runs up to `place`. */
type SummaryOfRuns = { readonly messages: readonly Message[]; readonly place: number; readonly turns: number; readonly tokens: number }

function summaryThatFits(store: Store, conversationId: string, tokenBudget: number): SummaryOfRuns {
  const summary = latestSummary(store, conversationId)
  const place = summary ? placeOf(store, summary.through) : undefined
  const messages = summary ? [{ role: 'user' as const, content: summarySection(summary.text) }] : []
  const tokens = estimateTokens(messages)
  if (!summary || place === undefined || tokens > tokenBudget) return { messages: [], place: 0, turns: 0, tokens: 0 }
  return { messages, place, turns: summary.turns, tokens }
}

type RunRow = { readonly at: number; readonly runId: string; readonly started: number }

/**
 * Newest first, by sequence, because a clock may be set back. Reads in pages; otherwise each turn of a long conversation would cost more
 * than the last.
 */
export function* runsOf(store: Store, conversationId: string, after: number): Generator<RunRow> {
  const page = store.sql<RunRow, [string, number, number]>(
    'SELECT rowid AS at, run_id AS runId, started FROM runs WHERE conversation_id = ? AND rowid < ? AND rowid > ? ORDER BY rowid DESC LIMIT 32',
  )
  for (let runs = page.all(conversationId, Number.MAX_SAFE_INTEGER, after); runs.length > 0; ) {
    yield* runs
    runs = page.all(conversationId, runs.at(-1)?.at ?? 0, after)
  }
}

/** The runs of a turn, oldest first; `single` when it has only one. */
type TurnRow = { readonly runIds: readonly string[]; readonly started: number; readonly single?: TurnOfRuns }

/** Groups runs, newest first, into turns: a run that continued an earlier one belongs to its turn. */
export function* turnsOf(runs: Iterable<RunRow>, readTurn: ReadTurn): Generator<TurnRow> {
  let turn: TurnRow | undefined
  for (const { runId, started } of runs) {
    const run = readTurn([runId])
    turn = turn ? { runIds: [runId, ...turn.runIds], started } : { runIds: [runId], started, single: run }
    if (run.isContinuation) continue
    yield turn
    turn = undefined
  }
  // A summary replaces the beginning of this turn.
  if (turn) yield turn
}

/** Counts meta and inputs, because they are sent too. */
export function estimateTokens(messages: readonly Message[]): number {
  const tokens = (message: Message) =>
    message.role === 'assistant'
      ? tokensOf(JSON.stringify(message.parts))
      : tokensOf(message.content) + (message.pictures?.length ?? 0) * pictureTokens
  return messages.reduce((sum, message) => sum + tokens(message), 0)
}

function rowsOf(store: Store, runId: string): JournalledTurn[] {
  return store
    .sql<JournalledTurn, [string]>(
      `SELECT seq, role, content, tool_results AS toolResults, body, type FROM turns JOIN journal ON journal.seq = turns.journal_seq
       WHERE turns.run_id = ? AND journal.type <> '${foreignLine}' ORDER BY id`,
    )
    .all(runId)
}

/** Explains a turn without an answer to the model. A person who cancelled the turn knows why, so that turn gets no note. */
function interruptionOf(store: Store, runId: string): Message[] {
  const select =
    "SELECT digest IS NULL AS died, message FROM runs WHERE run_id = ? AND (message = 'cancelled by SIGTERM' OR (code = 'error' AND digest IS NULL))"
  const ended = store.sql<{ died: number; message: string }, [string]>(select).get(runId)
  if (!ended) return []
  const why = ended.died ? 'its process ended before it did' : 'the server was stopped'
  return [{ role: 'user', content: `[BraidClaw: the turn above was interrupted: ${why}]` }]
}

type TrimAt = { readonly seq: number; readonly runId: string; readonly trim: Shortening }

/** Returns how the run's messages were shortened, oldest first. */
function trimsOf(store: Store, runId: string): TrimAt[] {
  const select = "SELECT seq, body FROM journal WHERE run_id = ? AND type = 'context.trimmed' ORDER BY seq"
  return store
    .sql<{ seq: number; body: string }, [string]>(select)
    .all(runId)
    .flatMap(({ seq, body }) => {
      const trim = shorteningIn(parseJson(body))
      return trim ? [{ seq, runId, trim }] : []
    })
}

/** Tells whether the run continued an earlier one. It reads the journal only for runs without a question of their own. */
function isContinuation(store: Store, runId: string, rows: readonly JournalledTurn[] = []): boolean {
  if (rows[0]?.type === 'run.start' && !rows[0].body.includes('"continues":{')) return false
  const select = `SELECT 1 FROM journal WHERE run_id = ? AND type = 'run.start' AND json_extract(body, '$.continues.run') IS NOT NULL`
  return store.sql(select).get(runId) !== null
}

/**
 * Joins the rows of a turn: the note of a run that continues it comes after the results of the run's calls, and it replaces a note that no
 * reply followed. `isOpen`: one more run continues the turn.
 */
function turnRows(parts: readonly (readonly JournalledTurn[])[], isOpen: boolean): readonly JournalledTurn[] {
  const isNote = ({ role, type }: JournalledTurn) => role === 'user' && type !== 'retry' && type !== 'steer'
  const withoutNote = (rows: readonly JournalledTurn[]) => (rows.length > 1 && rows.slice(-1).some(isNote) ? rows.slice(0, -1) : rows)
  const joined = parts.reduce((before, part) => {
    const notes = part.filter(isNote)
    const rest = part.filter((row) => !isNote(row))
    const replied = rest.findIndex(({ role }) => role === 'assistant')
    const results = replied === -1 ? rest.length : replied
    return [...withoutNote(before), ...rest.slice(0, results), ...notes, ...rest.slice(results)]
  })
  return isOpen ? withoutNote(joined) : joined
}

/**
 * Puts what a person said during the turn where the requests had it: before the next reply, after the results. Without a reply no request
 * had it, and it began the next turn.
 */
function withSteersPlaced(rows: readonly JournalledTurn[]): readonly JournalledTurn[] {
  const held: JournalledTurn[] = []
  return rows.flatMap((row) => {
    if (row.type === 'steer') held.push(row)
    return row.role === 'assistant' ? [...held.splice(0), row] : row.type === 'steer' ? [] : [row]
  })
}

/** A trim comes before a reply: when all results of the replies before it are there. */
function messagesOfTurn(given: readonly JournalledTurn[], trims: readonly TrimAt[], open?: ReadonlySet<string>): Message[] {
  const rows = withSteersPlaced(given)
  const due = [...trims]
  let messages: Message[] = []
  const trimBefore = (seq: number) => {
    for (let [next] = due; next !== undefined && next.seq < seq; [next] = due) {
      messages = shorten(messages, next.trim, next.runId)
      due.shift()
    }
  }
  for (const [at, row] of rows.entries()) {
    if (row.role === 'assistant') trimBefore(row.seq)
    const copied = row.type === copiedMessage ? copiedIn({ type: row.type, body: parseJson(row.body) }) : undefined
    if (copied) messages.push(copied.message)
    else if (row.role === 'user')
      messages.push({ role: 'user', content: row.content, ...(row.type === 'retry' ? { isEvidence: true } : {}), ...picturesOf(row) })
    else if (row.role === 'assistant') messages.push(...replyOf(rows, at, open))
  }
  trimBefore(Number.POSITIVE_INFINITY)
  return messages
}

/** Returns a reply and one result per call, in the order of the calls, as the model received them. */
function replyOf(rows: readonly JournalledTurn[], at: number, open: ReadonlySet<string> = new Set()): Message[] {
  const parts = partsOf(rows[at]?.body ?? 'null')
  if (parts.length === 0) return []
  const results = resultsAfter(rows, at)
  const answers = parts.flatMap((part): ToolMessage[] => {
    if (part.type !== 'call' || open.has(part.id)) return []
    return [results.get(part.id) ?? { role: 'tool', callId: part.id, name: part.name, content: unanswered, isError: true }]
  })
  return [{ role: 'assistant', parts }, ...answers]
}

function resultsAfter(rows: readonly JournalledTurn[], at: number): ReadonlyMap<string, ToolMessage> {
  const next = rows.findIndex((row, index) => index > at && row.role !== 'tool')
  const messages = rows.slice(at + 1, next === -1 ? undefined : next).flatMap(toolMessage)
  return new Map(messages.map((message) => [message.callId, message]))
}

function toolMessage(row: JournalledTurn): ToolMessage[] {
  const { content, toolResults } = row
  const [shown]: unknown[] = JSON.parse(toolResults ?? '[]')
  if (!isObject(shown) || typeof shown.call_id !== 'string' || typeof shown.name !== 'string') return []
  return [{ role: 'tool', callId: shown.call_id, name: shown.name, content, isError: shown.status !== 'allowed', ...picturesOf(row) }]
}

/** Looks into the body only where it names pictures, which most do not. */
function picturesOf({ body, type }: JournalledTurn): { pictures?: readonly PictureRef[] } {
  if (!body.includes('"pictures":[')) return {}
  const event = externalOf({ seq: 0, kind: 'external', type, body: parseJson(body) })
  return event?.type === 'run.start' ? picturesIn(event) : event?.type === 'tool.done' ? picturesIn(event.outcome) : {}
}

/** Returns the parts unchanged from the journal, because a provider requires its own `meta` back byte for byte. */
function partsOf(body: string): Part[] {
  const event: unknown = JSON.parse(body)
  return isObject(event) && Array.isArray(event.parts) ? event.parts.filter(isPart) : []
}

type TurnOfRuns = { readonly messages: readonly Message[]; readonly tokens: number; readonly isContinuation: boolean }
type ReadTurn = (runIds: readonly string[], open?: ReadonlySet<string>) => TurnOfRuns

/** The cache keeps the newest runs, up to this many tokens. */
const mostTokens = 1_000_000

/** Caches the messages of ended turns between the turns of a long-lived process: their rows change only when another connection writes. */
function createTurnCache(store: Store, read: ReadTurn): ReadTurn {
  const cache = new Map<string, TurnOfRuns>()
  const state = { tokens: 0, version: -1 }

  function keep(key: string, entry: TurnOfRuns): void {
    cache.set(key, entry)
    state.tokens += entry.tokens
    for (const [oldest, { tokens }] of cache) {
      if (state.tokens <= mostTokens) return
      cache.delete(oldest)
      state.tokens -= tokens
    }
  }

  return (runIds, open) => {
    if (open) return read(runIds, open)
    // Changes with every commit of another connection, in this process or not.
    const now = store.sql<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? -1
    if (now !== state.version) {
      cache.clear()
      Object.assign(state, { tokens: 0, version: now })
    }
    const key = runIds.join(' ')
    const known = cache.get(key)
    if (known) return known
    const entry = read(runIds)
    if (isOver(store, runIds.at(-1) ?? '')) keep(key, entry)
    return entry
  }
}

export function isOver(store: Store, runId: string): boolean {
  const over = `SELECT 1 FROM runs WHERE run_id = ? AND ended IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM intents WHERE intents.run_id = runs.run_id)`
  return store.sql(over).get(runId) !== null
}

/** `at`: the time of the decision, in milliseconds since 1970. */
type LateDecision = { readonly at: number; readonly message: Message }

/** Reads by the primary key: a run without such changes costs one look-up. The second condition: the call ended, and nobody was asked. */
const select = `SELECT id FROM approvals
   WHERE id > 'changes:' || ?1 || '/' AND id < 'changes:' || ?1 || '0' AND decided_by IS NOT 'approval.nobody'
   AND (state IN ('used', 'denied') OR (state = 'open' AND expires <= ?2)) AND NOT EXISTS (SELECT 1 FROM applying WHERE applying.id = approvals.id)
   AND EXISTS (SELECT 1 FROM journal WHERE run_id = ?1 AND type = 'drop' AND json_extract(body, '$.id') = call_id
     AND json_extract(body, '$.by') = 'approval.nobody')`

/** Returns the late decisions about changes of that run: after their calls had ended a person decided, or nobody did in time. */
export function lateDecisions(store: Store, approvals: Pick<Approvals, 'get'>, runId: string, now: number): readonly LateDecision[] {
  const rows = store
    .sql<{ id: string }, [string, number]>(select)
    .all(runId, now)
    .flatMap(({ id }) => approvals.get(id) ?? [])
    .filter(({ state }) => state !== 'altered')
  return rows.map((row) => ({ at: row.decidedAt ?? row.expires, message: { role: 'user', content: lineOf(row) } }))
}

function lineOf({ callId, summary, state, decidedBy, note }: Approval): string {
  const what = `the changes of ${callId} (${summary})`
  const reason = note === null ? '' : `: ${note}`
  if (state === 'used') return `[BraidClaw: since then ${decidedBy} allowed ${what}${reason}. They were applied to the workspace]`
  const why = state === 'open' ? 'nobody answered in time' : `${decidedBy}${reason === '' ? ' said no' : reason}`
  return `[BraidClaw: since then ${what} were dropped, not applied: ${why}]`
}
