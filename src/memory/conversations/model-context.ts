/** The conversation so far as messages for the model: a summary of the older turns if there is one, and the newest whole turns that fit. */

import { isObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { Message } from '../../runtime/port.ts'
import { foreignLine } from '../agent-files/foreign-line.ts'
import type { Role } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { latestSummary, placeOf } from './summaries.ts'
import { summarySection } from './summary-words.ts'
import { createToldRuns } from './told-runs.ts'

/**
 * `omittedTurns` are the older turns left out for want of room: tell the model or the person when it is not zero. `summarisedTurns` are those
 * that the first message tells in short.
 */
export type Context = {
  readonly messages: Message[]
  readonly omittedTurns: number
  readonly estimatedTokens: number
  readonly summarisedTurns?: number
}

type Row = { readonly role: Role; readonly content: string; readonly toolResults: string | null; readonly body: string }
type ToolMessage = Extract<Message, { role: 'tool' }>

const unanswered = 'No result: the run ended before this call was carried out.'

/**
 * A turn is one run: the question, its replies and their results. It is taken whole or not at all, so no result loses its call; a call
 * that never got a result is given one that says so. Ask before the new run begins, or its own question is among the messages.
 * Tokens are estimated as UTF-8 bytes divided by four: near for English, generous for code, too low by up to a half for CJK.
 */
export function createContext(store: Store): (conversationId: string, tokenBudget: number) => Context {
  const toldRun = createToldRuns(store, (runId) => {
    const messages = messagesOfRun(rowsOf(store, runId))
    return { messages, tokens: estimateTokens(messages) }
  })
  return (conversationId, tokenBudget) => {
    const turns = countTurns(store, conversationId)
    if (turns === undefined) return { messages: [], omittedTurns: 0, estimatedTokens: 0 }
    const summary = summaryThatFits(store, conversationId, tokenBudget)
    const taken: (readonly Message[])[] = []
    let tokens = summary.tokens
    for (const runId of runsOf(store, conversationId, summary.place)) {
      const { messages, tokens: more } = toldRun(runId)
      if (tokens + more > tokenBudget) break
      tokens += more
      taken.unshift(messages)
    }
    const omittedTurns = turns - summary.turns - taken.filter((messages) => messages.length > 0).length
    return {
      messages: [...summary.messages, ...taken.flat()],
      omittedTurns: Math.max(0, omittedTurns),
      estimatedTokens: tokens,
      ...(summary.turns > 0 ? { summarisedTurns: summary.turns } : {}),
    }
  }
}

/** What stands for all runs up to `place`. */
type Summarised = { readonly messages: readonly Message[]; readonly place: number; readonly turns: number; readonly tokens: number }

function summaryThatFits(store: Store, conversationId: string, tokenBudget: number): Summarised {
  const summary = latestSummary(store, conversationId)
  const place = summary ? placeOf(store, summary.through) : undefined
  const messages = summary ? [{ role: 'user' as const, content: summarySection(summary.text) }] : []
  const tokens = estimateTokens(messages)
  if (!summary || place === undefined || tokens > tokenBudget) return { messages: [], place: 0, turns: 0, tokens: 0 }
  return { messages, place, turns: summary.turns, tokens }
}

/** Newest first, by sequence: a clock may be set back. A page at a time, or each turn of a long conversation would cost more than the last. */
function* runsOf(store: Store, conversationId: string, after: number): Generator<string> {
  const page = store.sql<{ at: number; runId: string }, [string, number, number]>(
    'SELECT rowid AS at, run_id AS runId FROM runs WHERE conversation_id = ? AND rowid < ? AND rowid > ? ORDER BY rowid DESC LIMIT 32',
  )
  for (let runs = page.all(conversationId, Number.MAX_SAFE_INTEGER, after); runs.length > 0; ) {
    for (const { runId } of runs) yield runId
    runs = page.all(conversationId, runs.at(-1)?.at ?? 0, after)
  }
}

/** Questions asked; a run that never came to one is no turn. Undefined when nothing was ever said. */
function countTurns(store: Store, conversationId: string): number | undefined {
  const row = store.sql<{ turns: number }, [string]>('SELECT turns FROM conversations WHERE conversation_id = ?').get(conversationId)
  return row?.turns
}

export function estimateTokens(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + Math.ceil(Buffer.byteLength(spelled(message)) / 4), 0)
}

/** With meta and inputs: they travel too. */
function spelled(message: Message): string {
  return message.role === 'assistant' ? JSON.stringify(message.parts) : message.content
}

function rowsOf(store: Store, runId: string): Row[] {
  return store
    .sql<Row, [string]>(
      `SELECT role, content, tool_results AS toolResults, body FROM turns JOIN journal ON journal.seq = turns.journal_seq
       WHERE turns.run_id = ? AND journal.type <> '${foreignLine}' ORDER BY id`,
    )
    .all(runId)
}

function messagesOfRun(rows: readonly Row[]): Message[] {
  return rows.flatMap((row, at) => {
    if (row.role === 'user') return [{ role: 'user', content: row.content }]
    if (row.role === 'tool') return []
    const parts = partsOf(row.body)
    return parts.length === 0 ? [] : [{ role: 'assistant', parts }, ...answers(parts, resultsAfter(rows, at))]
  })
}

/** One result a call, in the order of the calls, as the model was told them. */
function answers(parts: readonly Part[], results: ReadonlyMap<string, ToolMessage>): Message[] {
  return parts.flatMap((part) => {
    if (part.type !== 'call') return []
    return [results.get(part.id) ?? { role: 'tool', callId: part.id, name: part.name, content: unanswered, isError: true }]
  })
}

function resultsAfter(rows: readonly Row[], at: number): ReadonlyMap<string, ToolMessage> {
  const next = rows.findIndex((row, index) => index > at && row.role !== 'tool')
  const messages = rows.slice(at + 1, next === -1 ? undefined : next).flatMap(toolMessage)
  return new Map(messages.map((message) => [message.callId, message]))
}

function toolMessage({ content, toolResults }: Row): ToolMessage[] {
  const [shown]: unknown[] = JSON.parse(toolResults ?? '[]')
  if (!isObject(shown) || typeof shown.call_id !== 'string' || typeof shown.name !== 'string') return []
  return [{ role: 'tool', callId: shown.call_id, name: shown.name, content, isError: shown.status !== 'allowed' }]
}

/** Out of the journal untouched, for a provider wants its own `meta` back to the byte. */
function partsOf(body: string): Part[] {
  const event: unknown = JSON.parse(body)
  return isObject(event) && Array.isArray(event.parts) ? event.parts.filter(isPart) : []
}

function isPart(value: unknown): value is Part {
  if (!isObject(value)) return false
  if (value.type === 'call') return typeof value.id === 'string' && typeof value.name === 'string' && isObject(value.input)
  return (value.type === 'text' || value.type === 'thinking') && typeof value.text === 'string'
}
