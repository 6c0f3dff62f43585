/** Projects the journal to turn rows, the form in which people and models see a conversation. */

import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import type { ToolOutcome } from '../../runtime/event.ts'
import { dropText, outcomeText } from '../../runtime/outcome.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { fileNames } from '../agent-files/agent-paths.ts'
import type { EntryBody, JournalEntry } from './journal-entry.ts'
import { copiedIn, foreignLine, foreignLineIn, messageIn } from './journal-entry.ts'

export type Role = 'user' | 'assistant' | 'tool'

/**
 * One row of `memory show` and of the export. `timestamp` is ISO 8601 in UTC. `content` is the text as the model saw or wrote it.
 * `tool_calls`: [{id, name, input, malformed?}]; `tool_results`: [{call_id, name, status, error?, receipt?}], with their text in `content`.
 */
export type Turn = {
  readonly conversation_id: string
  readonly turn_id: string
  readonly timestamp: string
  readonly role: Role
  readonly content: string
  readonly tool_calls: Json
  readonly tool_results: Json
  readonly provider: string
  readonly model: string
  readonly metadata: JsonObject
}

/** Returns all turn rows of one run, from its journal entries in order. */
export function projectTurns(run: RunIdentity, entries: readonly JournalEntry[]): Turn[] {
  const tools = new Map<string, string>()
  return entries.flatMap((entry) => {
    if (entry.kind === 'intent') tools.set(textOf(entry.body, 'id'), textOf(member(entry.body, 'call'), 'name'))
    return turnOf(run, entry, (callId) => tools.get(callId)) ?? []
  })
}

/** Returns the turn row that one journal entry adds, if any. `toolOf` names the tool of a call with an earlier intent. */
export function turnOf(run: RunIdentity, entry: EntryBody, toolOf: (callId: string) => string | undefined): Turn | undefined {
  const { body } = entry
  if (entry.kind === 'external' && entry.type === 'run.start') {
    const [content, continues] = [textOf(body, 'prompt'), textOf(member(body, 'continues'), 'run')]
    if (continues !== '' && content === '') return undefined
    return turn(run, entry, {
      role: 'user',
      content,
      metadata: { ...pick(body, ['mode', 'pictures']), ...(continues === '' ? {} : { continues }) },
    })
  }
  if (entry.kind === 'external' && (entry.type === 'model.done' || entry.type === 'judged')) return reply(run, entry)
  if (entry.kind === 'external' && entry.type === 'tool.done') return result(run, entry, toolOf)
  if (entry.kind === 'note' && entry.type === 'deny')
    return refusal(run, entry, `Denied by ${textOf(body, 'by')}: ${textOf(body, 'reason')}`)
  if (entry.kind === 'note' && entry.type === 'drop') return refusal(run, entry, droppedIn(body))
  if (entry.kind === 'note' && entry.type === 'retry')
    return turn(run, entry, { role: 'user', content: textOf(body, 'evidence'), metadata: { retry: true } })
  if (entry.kind === 'external' && entry.type === 'steer')
    return turn(run, entry, { role: 'user', content: textOf(body, 'text'), metadata: { steer: true } })
  if (entry.kind === 'note' && entry.type === foreignLine) return fromFile(run, entry)
  return entry.kind === 'note' ? copied(run, entry) : undefined
}

function reply(run: RunIdentity, entry: EntryBody): Turn {
  const parts = items(member(entry.body, 'parts'))
  const content = parts.filter(({ type }) => type === 'text').map((part) => textOf(part, 'text'))
  const calls = parts.filter(({ type }) => type === 'call').map((part) => pick(part, ['id', 'name', 'input', 'malformed']))
  return turn(run, entry, {
    role: 'assistant',
    content: content.join(''),
    tool_calls: calls.length > 0 ? calls : null,
    model: textOf(entry.body, 'model') || run.model,
    metadata: pick(entry.body, ['usage']),
  })
}

function result(run: RunIdentity, entry: EntryBody, toolOf: (callId: string) => string | undefined): Turn {
  const id = textOf(entry.body, 'id')
  const outcome = member(entry.body, 'outcome')
  const shown = { call_id: id, name: toolOf(id) ?? 'unknown', ...pick(outcome, ['status', 'error', 'receipt']) }
  return turn(run, entry, {
    role: 'tool',
    // The runtime's `calls` thread sends this text, so that a resumed conversation reads as before.
    content: outcomeText(outcomeIn(outcome)),
    tool_results: [shown],
    metadata: pick(outcome, ['metadata', 'pictures']),
  })
}

function refusal(run: RunIdentity, entry: EntryBody, content: string): Turn {
  const { by, reason } = { by: textOf(entry.body, 'by'), reason: textOf(entry.body, 'reason') }
  const error = entry.type === 'deny' ? content : `${by}: ${reason}`
  const name = textOf(member(entry.body, 'call'), 'name')
  const shown = { call_id: textOf(entry.body, 'id'), name, status: 'denied', error, ...pick(entry.body, ['receipt']) }
  return turn(run, entry, { role: 'tool', content, tool_results: [shown] })
}

function droppedIn(body: unknown): string {
  const [by, reason, summary] = [textOf(body, 'by'), textOf(body, 'reason'), textOf(member(body, 'review'), 'summary')]
  const outcome = member(body, 'outcome')
  const ran = { ...outcomeIn(outcome), metadata: { changes: textOf(member(outcome, 'metadata'), 'changes') } }
  return dropText({ by, reason, review: { summary }, outcome: ran })
}

/** Returns the row for a line that another program wrote into a file of the agent. It does not count as a question of this conversation. */
function fromFile(run: RunIdentity, entry: EntryBody): Turn | undefined {
  const line = foreignLineIn(entry)
  const message = line && messageIn(line)
  return line && message && turn(run, entry, { ...message, metadata: { file: fileNames[line.file], line: line.line, sha256: line.sha256 } })
}

/** Returns the row of a message that was copied into this conversation. */
function copied(run: RunIdentity, entry: EntryBody): Turn | undefined {
  const { message, said = 0, question } = copiedIn(entry) ?? {}
  if (message === undefined) return undefined
  const { role } = message
  const row =
    role === 'assistant'
      ? reply(run, { ...entry, body: message })
      : turn(run, entry, { role, content: message.content, metadata: pick(message, ['pictures']) })
  const results = role === 'tool' && [{ call_id: message.callId, name: message.name, status: message.isError ? 'failed' : 'allowed' }]
  const note: JsonObject = question || role !== 'user' ? {} : message.isEvidence ? { retry: true } : { continues: '' }
  return { ...row, tool_results: results || null, metadata: { ...row.metadata, copied: said, ...note } }
}

/** Tells whether a turn came from a file instead of a run. */
export function isFromFile({ metadata }: Pick<Turn, 'metadata'>): boolean {
  return metadata.file !== undefined
}

/** Tells whether the turn is a question; the note for a turn that continues, what a failed check found, and what was said meanwhile are not. */
export function isQuestion(turn: Pick<Turn, 'role' | 'metadata'>): boolean {
  return turn.role === 'user' && !isFromFile(turn) && !['continues', 'retry', 'steer'].some((name) => turn.metadata[name] !== undefined)
}

function outcomeIn(outcome: unknown): ToolOutcome {
  const given = textOf(outcome, 'status')
  const status = given === 'allowed' || given === 'denied' ? given : 'failed'
  const instructions = items(member(outcome, 'instructions')).map((one) => ({ path: textOf(one, 'path'), text: textOf(one, 'text') }))
  return { status, output: textOf(outcome, 'output'), error: textOf(outcome, 'error'), instructions }
}

function turn(run: RunIdentity, entry: EntryBody, own: Pick<Turn, 'role' | 'content'> & Partial<Turn>): Turn {
  return {
    conversation_id: run.conversationId,
    turn_id: run.turnId,
    timestamp: new Date(entry.at).toISOString(),
    tool_calls: null,
    tool_results: null,
    provider: run.provider,
    model: run.model,
    ...own,
    metadata: { run_id: run.runId, channel: run.channel, ...own.metadata },
  }
}

function member(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}

function textOf(value: unknown, key: string): string {
  const found = member(value, key)
  return typeof found === 'string' ? found : ''
}

function items(value: unknown): { [key: string]: unknown }[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Returns the named members that exist, as plain JSON. */
function pick(value: unknown, keys: readonly string[]): JsonObject {
  const found: [string, unknown][] = []
  for (const key of keys) if (member(value, key) !== undefined) found.push([key, member(value, key)])
  return JSON.parse(JSON.stringify(Object.fromEntries(found)))
}
