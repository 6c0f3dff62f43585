/** Holds what a process said before it died against what is on disk afterwards; every sentence it returns is a broken promise. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../src/kit/json.ts'
import type { JournalEntry } from '../../src/memory/journal/journal-entry.ts'
import type { Turn } from '../../src/memory/journal/turns.ts'
import { type Memory, openMemory } from '../../src/memory/memory.ts'
import type { JournalledAttempt } from '../../src/receipts/contract.ts'
import type { Home } from './home.ts'

type Fields = { readonly [key: string]: unknown }

/** The AgentEvents that reached us whole, before the death. */
export type Acknowledged = {
  readonly runId?: string
  readonly prompt: string
  readonly uses: readonly Fields[]
  readonly results: readonly Fields[]
  readonly done?: Fields
}

export function acknowledged(prompt: string, stdout: string): Acknowledged {
  const events = stdout.split('\n').slice(0, -1).map(objectOf)
  const of = (type: string) => events.filter((event) => event.type === type)
  const runId = of('init')[0]?.runId
  return { ...(typeof runId === 'string' ? { runId } : {}), prompt, uses: of('tool_use'), results: of('tool_result'), done: of('done')[0] }
}

export function withMemory<T>(home: Home, use: (memory: Memory) => T): T {
  const opened = openMemory({ path: join(home.state, 'memory.sqlite'), log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  try {
    return use(opened.memory)
  } finally {
    opened.memory.close()
  }
}

/** After the next start put things right: all that was acknowledged is there, and every act has exactly one result. */
export function brokenPromises(home: Home, memory: Memory, said: Acknowledged): string[] {
  const open = memory.journal.unfinished().map(({ runId }) => `run ${runId} is still open after the next start`)
  if (said.runId === undefined) return open
  const run = memory.journal.run(said.runId)
  if (!run) return [...open, `run ${said.runId} was announced, the journal does not know it`]
  const turns = memory.conversations.show(run.conversationId).filter(({ metadata }) => metadata.run_id === said.runId)
  const entries = memory.journal.events(said.runId)
  return [...open, ...lostTurns(said, turns), ...lostResults(said, turns, receipts(home)), ...unevenActs(entries)]
}

function lostTurns({ prompt, uses, done }: Acknowledged, turns: readonly Turn[]): string[] {
  const question = turns.some(({ role, content }) => role === 'user' && content === prompt)
  const asked = new Set(turns.flatMap(({ tool_calls }) => list(tool_calls).map(({ id }) => id)))
  const missing = uses.filter(({ toolCallId }) => !asked.has(toolCallId))
  const answer = turns.findLast(({ role }) => role === 'assistant')?.content
  return [
    ...(question ? [] : [`the question "${prompt}" is not in memory`]),
    ...missing.map(({ toolCallId }) => `tool_use ${toolCallId} was shown, no turn holds it`),
    ...(done?.result !== undefined && done.result !== answer
      ? [`done said ${JSON.stringify(done.result)}, memory has ${JSON.stringify(answer)}`]
      : []),
  ]
}

/** Each result that was shown has its turn, with the same text, and its receipt, with the same status. */
function lostResults({ results }: Acknowledged, turns: readonly Turn[], log: ReadonlyMap<unknown, Fields>): string[] {
  return results.flatMap(({ toolCallId, status, output }) => {
    const rows = turns.filter(({ tool_results }) => list(tool_results).some(({ call_id }) => call_id === toolCallId))
    const [row] = rows
    const [told = {}] = list(row?.tool_results)
    if (!row || rows.length > 1) return [`result ${toolCallId} was shown, ${rows.length} turns hold it`]
    const receipt = log.get(told.receipt)
    if (!receipt) return [`result ${toolCallId} names ${told.receipt}, which is not in the log`]
    const agrees = receipt.status === told.status && (status === 'completed') === (told.status === 'allowed') && row.content === output
    return agrees ? [] : [`result ${toolCallId}: shown ${status} ${output}, turn ${told.status} ${row.content}, receipt ${receipt.status}`]
  })
}

function unevenActs(entries: readonly JournalEntry[]): string[] {
  const ids = (wanted: string) => entries.filter(({ type }) => type === wanted).map(({ body }) => objectOf(body).id)
  const done = ids('tool.done')
  const acts = ids('act').map((id) => ({ id, results: done.filter((other) => other === id).length }))
  const ends = entries.filter(({ type }) => type === 'finish' || type === 'interrupted').length
  return [
    ...acts.filter(({ results }) => results !== 1).map(({ id, results }) => `act ${id} has ${results} results`),
    ...(ends === 1 ? [] : [`the run has ${ends} ends`]),
  ]
}

/** One receipt for one attempt, neither none nor a second. */
export function unevenReceipts(log: readonly Fields[], attempts: readonly JournalledAttempt[]): string[] {
  const statuses = new Map(log.map(({ id, status }) => [id, status]))
  const without = attempts.filter(({ receiptId, status, pending }) => !pending && statuses.get(receiptId) !== status)
  return [
    ...without.map(({ runId, callId, status, receiptId }) => `${callId} of ${runId} ended ${status}, its receipt is ${receiptId}`),
    ...doubledReceipts(log, attempts),
  ]
}

/**
 * Of the receipts of one conversation, tool and arguments there may be no more than the journal knows attempts of them; a single one that it
 * knows nothing of may be a refusal that was lost with its step.
 */
function doubledReceipts(log: readonly Fields[], attempts: readonly JournalledAttempt[]): string[] {
  const key = (...parts: readonly unknown[]) => parts.join(' ')
  const known = Map.groupBy(attempts, ({ conversationId, tool, argsHash }) => key(conversationId, tool, argsHash))
  const written = Map.groupBy(log, ({ conversation_id, tool, args_hash }) => key(conversation_id, tool, args_hash))
  return [...written].flatMap(([each, receipts]) => {
    const count = known.get(each)?.length ?? 0
    if (receipts.length <= Math.max(1, count)) return []
    return [
      `${count} attempts of ${each} have ${receipts.length} receipts: ${receipts.map(({ id, status }) => `${id} ${status}`).join(', ')}`,
    ]
  })
}

/** A file that a call wrote, or a line that it appended: there when its receipt says allowed, and never without an intent. */
export type Effect = { readonly callId: string; readonly text: string; readonly path: string; readonly kind: 'whole' | 'line' }

export function brokenEffects(home: Home, entries: readonly JournalEntry[], effects: readonly Effect[]): string[] {
  return effects.flatMap((effect) => {
    const times = timesSeen(home, effect)
    const begun = entries.some(({ type, body }) => type === 'act' && objectOf(body).id === effect.callId)
    const done = entries.find(({ type, body }) => type === 'tool.done' && objectOf(body).id === effect.callId)
    const outcome = objectOf(objectOf(done?.body).outcome)
    if (times > 1) return [`${effect.text} was done ${times} times`]
    if (times === 1 && !begun) return [`${effect.text} was done, but no intent was journalled`]
    if (times === 0 && outcome.status === 'allowed') return [`${effect.text} has an "allowed" receipt, but is not there`]
    const known = outcome.status === 'allowed' || String(outcome.error).startsWith('interrupted: ')
    return done && !known ? [`${effect.text} ended ${outcome.status}: ${outcome.error}`] : []
  })
}

function timesSeen({ workspace }: Home, { path, text, kind }: Effect): number {
  const whole = join(workspace, path)
  if (!existsSync(whole)) return 0
  const content = readFileSync(whole, 'utf8')
  // A file that is there and holds anything else is torn.
  if (kind === 'whole') return content === text ? 1 : 2
  return content.split('\n').filter((line) => line === text).length
}

/** Whether the next start had anything to put right in this run. */
export function wasInterrupted(entries: readonly JournalEntry[]): boolean {
  return entries.some(({ type }) => type === 'interrupted')
}

/** By id, read as a stranger would: one JSON object a line. */
export function receipts({ state }: Home): ReadonlyMap<unknown, Fields> {
  const path = join(state, 'tool_receipts.log')
  if (!existsSync(path)) return new Map()
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean).map(objectOf)
  return new Map(lines.map((receipt) => [receipt.id, receipt]))
}

function objectOf(value: unknown): Fields {
  const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value
  return isObject(parsed) ? parsed : {}
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
