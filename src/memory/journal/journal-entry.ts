/** Defines one entry of the journal, and chains the digests of a run's entries, so that the first altered one can be found. */

import { attempt } from '../../kit/errors.ts'
import { isObject, type Json, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Part } from '../../runtime/event.ts'
import type { Message } from '../../runtime/port.ts'
import type { AgentFile } from '../agent-files/agent-paths.ts'

/** `at` is in milliseconds since 1970. `body` is the event as JSON. */
export type JournalEntry = {
  readonly seq: number
  readonly kind: 'external' | 'intent' | 'note'
  readonly type: string
  readonly at: number
  readonly body: Json
}

/** An entry without its number; the body may still be the live event. */
export type EntryBody = Pick<JournalEntry, 'kind' | 'type' | 'at'> & { readonly body: unknown }

/** An entry of which `body` is the text. */
export type JournalRow = Omit<JournalEntry, 'body'> & { readonly body: string }

export const entryColumns = 'seq, kind, type, at, body'

/** Returns undefined for a body with invalid JSON, which our code never writes. */
export function entryOf(row: JournalRow): JournalEntry | undefined {
  return attempt(() => ({ ...row, body: JSON.parse(row.body) }))
}

/** An entry as stored: `body` is the exact text. `digest` is null in entries of versions without digests. */
export type StoredEntry = JournalRow & { readonly digest: string | null }

/** `event` counts the run's entries from 1; `seq` is the entry's own number. */
export type AlteredEntry = { readonly event: number; readonly seq: number; readonly message: string }

/**
 * Returns SHA-256 in hex. `previous` is the digest of the previous entry, null for a run's first. It uses no secret: it reveals changes,
 * but does not prevent them.
 */
export function digestOf(runId: string, previous: string | null, { kind, type, at, body }: Omit<StoredEntry, 'seq' | 'digest'>): string {
  return sha256(JSON.stringify([previous, runId, kind, type, at]) + body)
}

/**
 * Returns the first altered entry of a run, or the first after a deleted one. Entries without a digest are accepted only before the first
 * entry with one. The seal, not this function, reveals a truncated end.
 */
export function firstAltered(runId: string, entries: Iterable<StoredEntry>): AlteredEntry | undefined {
  let previous: string | null = null
  let event = 0
  for (const entry of entries) {
    event += 1
    if (entry.digest === null && previous === null) continue
    if (entry.digest !== digestOf(runId, previous, entry))
      return { event, seq: entry.seq, message: `event ${event} is not what was written, or what stood before it is gone` }
    previous = entry.digest
  }
}

/** The type of the note for a line that another program wrote into an agent's file. */
export const foreignLine = 'file.line'

/** `line` counts from 1 in the file at that time. */
export type ForeignLine = { readonly file: AgentFile; readonly line: number; readonly sha256: string; readonly text: string }

/** Returns undefined for any other entry. */
export function foreignLineIn({ kind, type, body }: Omit<EntryBody, 'at'>): ForeignLine | undefined {
  if (kind !== 'note' || type !== foreignLine || !isObject(body)) return undefined
  const { file, line, sha256: digest, text } = body
  if (file !== 'trace' && file !== 'session' && file !== 'history') return undefined
  return typeof line === 'number' && typeof digest === 'string' && typeof text === 'string'
    ? { file, line, sha256: digest, text }
    : undefined
}

/** Returns the line as a message of a conversation; undefined for a line of the trace, and for the rest of a truncated message. */
export function messageIn({ file, text }: ForeignLine): { readonly role: 'user' | 'assistant'; readonly content: string } | undefined {
  if (file === 'trace') return undefined
  const value = parseJson(text)
  if (isObject(value) && typeof value.content === 'string')
    return { role: value.role === 'assistant' ? 'assistant' : 'user', content: value.content }
  return /^[{}[\]]/.test(text.trim()) ? undefined : { role: 'user', content: text }
}

/** The notes of a run that copies one turn of another conversation, or of a file: its messages, then its end. */
export const [copiedMessage, copiedTurn] = ['message.copied', 'turn.copied']

/** `said`: when the turn began, in milliseconds since 1970. `question`: the message began it. */
export type CopiedMessage = { readonly message: Message; readonly said: number; readonly question: boolean }

/** Returns undefined for any other entry. */
export function copiedIn({ type, body }: Pick<EntryBody, 'type' | 'body'>): CopiedMessage | undefined {
  if (type !== copiedMessage || !isObject(body) || !isMessage(body.message)) return undefined
  return { message: body.message, said: Number(body.said), question: body.question === true }
}

/** Tells whether the value has the members that every message of its role has. */
export function isMessage(value: unknown): value is Message {
  if (!isObject(value)) return false
  if (value.role === 'assistant') return Array.isArray(value.parts) && value.parts.every(isPart)
  if (typeof value.content !== 'string') return false
  return value.role === 'user' || (value.role === 'tool' && [value.callId, value.name].every((each) => typeof each === 'string'))
}

/** Tells whether the value is a part of a reply. */
export function isPart(value: unknown): value is Part {
  if (!isObject(value)) return false
  if (value.type === 'call') return typeof value.id === 'string' && typeof value.name === 'string' && isObject(value.input)
  return (value.type === 'text' || value.type === 'thinking') && typeof value.text === 'string'
}
