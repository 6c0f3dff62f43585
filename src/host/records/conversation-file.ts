/** Reads the file of a conversation, as JSON, and writes it as Markdown for a person. */

import { isObject } from '../../kit/json.ts'
import { count, cut, quote, visible, visibleLines } from '../../kit/text.ts'
import { isMessage } from '../../memory/journal/journal-entry.ts'
import type { Label } from '../../runtime/event.ts'
import type { Message } from '../../runtime/port.ts'
import type { ConversationFile } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'

/** Removes what only one provider can read, such as signatures and encrypted thinking, and pictures, which a note counts instead. */
export function forFile(message: Message): Message {
  if (message.role === 'assistant') return { role: 'assistant', parts: message.parts.map(({ meta: _, ...part }) => part) }
  const { role, pictures = [] } = message
  const note = pictures.length > 0 ? `\n[${count(pictures.length, 'picture')} of this message: not in the file]` : ''
  const content = message.content + note
  if (role === 'user') return { role, content, ...(message.isEvidence ? { isEvidence: true } : {}) }
  return { role, callId: message.callId, name: message.name, content, isError: message.isError === true }
}

/** More would hold up the writers of other processes for too long. */
const mostTurns = 10_000
const labels: readonly unknown[] = ['reads_private', 'reads_untrusted'] satisfies readonly Label[]

/** @throws FailureError `usage` that names the place, when the value is not what `session export --json` wrote */
export function readConversation(value: unknown): ConversationFile {
  const { format, version, title, turns, ...rest } = isObject(value) ? value : {}
  if (format !== 'braidclaw.conversation') throw wrong('format', 'must be "braidclaw.conversation"', format)
  if (version !== 1) throw wrong('version', 'must be 1, which this version of BraidClaw reads', version)
  if (typeof title !== 'string' || title.trim() === '') throw wrong('title', 'must be a text', title)
  if (!Array.isArray(turns) || turns.length === 0 || turns.length > mostTurns)
    throw wrong('turns', `must be a list of 1 to ${mostTurns} turns`, Array.isArray(turns) ? turns.length : turns)
  if (!isWithin(turns, mostLevels)) throw wrong('turns', `must be nested at most ${mostLevels} levels deep`, 'deeper')
  return {
    format,
    version,
    title,
    conversationId: String(rest.conversationId),
    folder: null,
    labels: Array.isArray(rest.labels) ? rest.labels.filter((each): each is Label => labels.includes(each)) : [],
    turns: turns.map((turn, index) => readTurn(turn, `turns[${index}]`)),
  }
}

/** Real calls have a few levels; much deeper values would end the program wherever it walks through them. */
const mostLevels = 200

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((each) => isWithin(each, levels - 1))
}

function readTurn(value: unknown, where: string): ConversationFile['turns'][number] {
  const { at, provider, model, messages } = isObject(value) ? value : {}
  if (typeof at !== 'string' || Number.isNaN(Date.parse(at))) throw wrong(`${where}.at`, 'must be a time such as 2026-11-30T12:00:00Z', at)
  if (!Array.isArray(messages)) throw wrong(`${where}.messages`, 'must be a list', messages)
  const [text, other] = [typeof provider === 'string' ? provider : '', typeof model === 'string' ? model : '']
  const read = messages.map((message, index) => {
    if (isMessage(message)) return forFile(message)
    throw wrong(`${where}.messages[${index}]`, 'must be a message with role user, assistant or tool', message)
  })
  if (read[0]?.role !== 'user') throw wrong(`${where}.messages[0]`, 'must be what the user said', read[0]?.role)
  assertAnswered(read, where)
  return { at, provider: text, model: other, messages: read }
}

/** A provider refuses a call without a result, and a result without a call. */
function assertAnswered(messages: readonly Message[], where: string): void {
  const open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const place = `${where}.messages[${index}]`
    if (message.role === 'tool' && !open.delete(message.callId))
      throw wrong(place, 'must be the result of a call before it', message.callId)
    if (message.role !== 'tool' && open.size > 0) throw wrong(place, 'must come after the results of the calls', [...open][0])
    if (message.role === 'assistant') for (const part of message.parts) if (part.type === 'call') open.add(part.id)
  }
  if (open.size > 0) throw wrong(`${where}.messages`, 'must hold the result of each call', [...open][0])
}

function wrong(where: string, must: string, value: unknown): FailureError {
  const given = value === undefined ? 'it is missing' : `it is ${quote(value)}`
  const why = `${where} ${must}; ${given}. Nothing was imported`
  return new FailureError('usage', `not a conversation that "session export --json" wrote: ${why}`)
}

/** Longer results are shortened: they are whole in the JSON. */
const longestResult = 4_000

/** Writes what people said as quotations and what tools returned as code, so that none of it can look like another's words. */
export function markdownOf({ title, conversationId, folder, turns }: ConversationFile): string {
  const head = [
    `# ${visible(title)}`,
    `Conversation \`${conversationId}\`, ${count(turns.length, 'turn')}${folder ? `, begun in \`${visible(folder)}\`` : ''}`,
  ]
  const body = turns.flatMap(({ at, model, messages }) => messages.flatMap((message) => sectionsOf(message, { at, model })))
  return `${[...head, ...body].join('\n\n')}\n`
}

function sectionsOf(message: Message, { at, model }: { readonly at: string; readonly model: string }): string[] {
  if (message.role === 'user')
    return [`## You · ${at.slice(0, 16).replace('T', ' ')}`, `> ${visibleLines(message.content).replaceAll('\n', '\n> ')}`]
  if (message.role === 'tool') return [`Result of ${visible(message.name)}${message.isError ? ' (failed)' : ''}:`, fenced(message.content)]
  const parts = message.parts.flatMap((part) => {
    if (part.type === 'text') return part.text.trim() === '' ? [] : [visibleLines(part.text)]
    return part.type === 'call' ? [`Call of ${visible(part.name)}:`, fenced(JSON.stringify(part.input, undefined, 2))] : []
  })
  return parts.length === 0 ? [] : [`## Assistant · ${visible(model)}`, ...parts]
}

/** Uses a fence that is longer than any in the text. */
function fenced(text: string): string {
  const shown = visibleLines(cut(text, longestResult))
  const longest = [...shown.matchAll(/`+/g)].reduce((most, [ticks]) => Math.max(most, ticks.length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${shown}\n${fence}`
}
