/** Repairs a server's answer for the vendor's library, because the libraries refuse a whole reply over one unknown member. */

import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { isKeepAlive, type JsonFields, readEvents } from '../chat/events.ts'
import type { Body } from '../wire/reply-body.ts'

/** Keeps only what we use. An invalid value in a known place stays unchanged, so that the library reports it. */
export type Repair = {
  /** Returns the replacement of one event: nothing, the event itself, or several events. */
  event(event: JsonFields): readonly JsonFields[]
  /** Returns the events that are missing at the end of the body. */
  end(): readonly JsonFields[]
  /** Repairs a complete answer. */
  document(value: unknown): unknown
}

/** Returns the repaired body for the library, one piece for each piece that arrives; undefined at the end. */
export function repairedPieces(body: Body, repair: Repair): () => Promise<Uint8Array | undefined> {
  const events = readEvents()
  let over = false

  function repaired(event: string): readonly string[] {
    const value = parseJson(event)
    return isObject(value) ? repair.event(value).map((each) => JSON.stringify(each)) : [event]
  }

  function rest(): readonly string[] {
    over = true
    const last = events.rest()
    const whole = last !== undefined && parseJson(last) !== undefined ? repaired(last) : []
    return [...whole, ...repair.end().map((each) => JSON.stringify(each))]
  }

  return async () => {
    while (!over) {
      const bytes = await body.next()
      const out = bytes === undefined ? rest() : events.take(bytes).flatMap(repaired)
      if (out.length > 0) return Buffer.from(out.map((event) => `data: ${event.replaceAll('\n', ' ')}\n\n`).join(''))
    }
    return undefined
  }
}

/** @returns the members that are numbers */
function countsOf(value: unknown): JsonObject {
  const members = Object.entries(isObject(value) ? value : {})
  return Object.fromEntries(members.flatMap(([key, count]): [string, number][] => (typeof count === 'number' ? [[key, count]] : [])))
}

/** @returns '' for every value that is not a string */
function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The items of an answer that we use. */
const items: ReadonlySet<unknown> = new Set(['message', 'reasoning', 'function_call'])

const ofItem: ReadonlySet<unknown> = new Set(['response.output_item.added', 'response.output_item.done'])

/** Repairs replies of the Responses API: it completes calls that lack members, and drops unknown items from a complete answer. */
export function repairResponses(): Repair {
  return {
    event: (event) => (isKeepAlive(event) ? [] : [ofItem.has(event.type) ? { ...event, item: itemOf(event.item) } : event]),
    end: () => [],
    document(value) {
      if (!isObject(value) || !Array.isArray(value.output)) return value
      const output: readonly unknown[] = value.output
      return { ...value, output: output.filter((item) => isObject(item) && items.has(item.type)).map(itemOf) }
    },
  }
}

/** A call without a name is still a call: the runtime tells the model. */
function itemOf(item: unknown): unknown {
  if (!isObject(item) || item.type !== 'function_call') return item
  const callId = textIn(item.call_id) || textIn(item.id)
  const args = item.arguments ?? ''
  return {
    ...item,
    id: textIn(item.id) || callId,
    call_id: callId,
    name: textIn(item.name),
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
    status: item.status ?? 'completed',
  }
}

const deltas: ReadonlySet<unknown> = new Set(['text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta'])

/** Repairs replies of the Messages API: it drops unknown blocks, deltas and events, and adds defaults for members that we do not need. */
export function repairMessages(): Repair {
  /** The indexes of dropped blocks. */
  const left = new Set<unknown>()
  const seen: { member?: boolean; stop?: boolean; last?: boolean; known?: boolean; unknown?: JsonFields } = {}

  function start({ index, content_block: block }: JsonFields): readonly JsonFields[] {
    const repaired = blockOf(block)
    if (repaired === undefined) left.add(index)
    else left.delete(index)
    return repaired === undefined
      ? []
      : [{ type: 'content_block_start', index, content_block: opened(repaired) }, ...begun(index, repaired)]
  }

  /** Notes whether this server names reasons at all, and whether it named one. */
  function note(value: unknown): void {
    const { stop_reason: reason } = isObject(value) ? value : {}
    seen.member ||= reason !== undefined
    seen.stop ||= textIn(reason) !== ''
  }

  function known(event: JsonFields): readonly JsonFields[] | undefined {
    switch (event.type) {
      case 'message_start':
        note(event.message)
        return [{ type: event.type, message: headOf(event.message) }]
      case 'content_block_start':
        return start(event)
      case 'content_block_delta':
        return left.has(event.index) || (isObject(event.delta) && !deltas.has(event.delta.type)) ? [] : [event]
      case 'content_block_stop':
        return left.delete(event.index) ? [] : [event]
      case 'message_delta':
        note(event.delta)
        return [{ type: event.type, delta: stopOf(event.delta), usage: { output_tokens: 0, ...countsOf(event.usage) } }]
      case 'message_stop':
        seen.last = true
        // A server that sends the member and names no reason broke off: without this event, the reply counts as cut.
        return seen.member && !seen.stop ? [] : [event]
      case 'ping':
        return []
      default:
        return event.error === undefined ? undefined : [{ type: 'error', error: errorOf(event.error) }]
    }
  }

  return {
    event(event) {
      const repaired = known(event)
      if (repaired === undefined) seen.unknown ??= Object.keys(event).length > 0 ? event : undefined
      else seen.known = true
      return repaired ?? []
    },
    // Some servers send a stop reason and then end without a final event.
    end() {
      if (seen.stop && !seen.last) return [{ type: 'message_stop' }]
      return !seen.known && seen.unknown !== undefined ? [seen.unknown] : []
    },
    document: documentOf,
  }
}

function documentOf(value: unknown): unknown {
  if (!isObject(value) || !(Array.isArray(value.content) || typeof value.content === 'string')) return value
  const content: readonly unknown[] = typeof value.content === 'string' ? [{ type: 'text', text: value.content }] : value.content
  const usage = { input_tokens: 0, output_tokens: 0, ...countsOf(value.usage) }
  return { ...headOf(value), type: 'message', content: content.flatMap((block) => blockOf(block) ?? []), ...stopOf(value), usage }
}

function headOf(message: unknown): JsonFields {
  const { id, model, usage } = isObject(message) ? message : {}
  return { id: textIn(id) || undefined, model: textIn(model) || undefined, usage: { input_tokens: 0, ...countsOf(usage) } }
}

function stopOf(value: unknown): JsonFields {
  const { stop_reason: reason, stop_sequence: sequence } = isObject(value) ? value : {}
  return { stop_reason: textIn(reason) || null, stop_sequence: textIn(sequence) || null }
}

/** @returns undefined for a block type that we do not use. A call without a name is still a call: the runtime tells the model. */
function blockOf(block: unknown): JsonFields | undefined {
  if (!isObject(block)) return undefined
  const { type, id, name, input } = block
  if (type === 'text') return { type, text: block.text ?? '' }
  if (type === 'thinking') return { type, thinking: block.thinking ?? '', signature: textIn(block.signature) }
  if (type === 'redacted_thinking' && typeof block.data === 'string') return { type, data: block.data }
  return type === 'tool_use' ? { type, id: textIn(id), name: textIn(name), input: input ?? {} } : undefined
}

/** Empties a block at its start; its initial text follows as a delta, because the library would ignore the text here. */
function opened(block: JsonFields): JsonFields {
  if (block.type === 'text') return { ...block, text: '' }
  if (block.type === 'thinking') return { ...block, thinking: '' }
  return block.type === 'tool_use' && !isObject(block.input) ? { ...block, input: {} } : block
}

function begun(index: unknown, block: JsonFields): readonly JsonFields[] {
  const event = (delta: JsonFields) => ({ type: 'content_block_delta', index, delta })
  if (block.type === 'text' && block.text !== '') return [event({ type: 'text_delta', text: block.text })]
  if (block.type === 'thinking' && block.thinking !== '') return [event({ type: 'thinking_delta', thinking: block.thinking })]
  const isWritten = block.type === 'tool_use' && !isObject(block.input)
  return isWritten ? [event({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })] : []
}

function errorOf(error: unknown): JsonFields {
  const { type, message } = isObject(error) ? error : {}
  return { type: textIn(type) || 'error', message: textIn(message) || JSON.stringify(error) }
}
