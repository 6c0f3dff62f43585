/** Repairs replies of the Messages API: it drops unknown blocks, deltas and events, and adds defaults for members that we do not need. */

import { isObject } from '../../kit/json.ts'
import { countsOf, type Fields, type Repair, type StreamRepair, textIn } from './repair.ts'

const deltas: ReadonlySet<unknown> = new Set(['text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta'])

export function repairMessages(): StreamRepair {
  /** The indexes of dropped blocks. */
  const left = new Set<unknown>()
  const seen: { member?: boolean; stop?: boolean; last?: boolean; known?: boolean; unknown?: Fields } = {}

  function start({ index, content_block: block }: Fields): readonly Fields[] {
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

  function known(event: Fields): readonly Fields[] | undefined {
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

  const repair: Repair = {
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
  return { repair, asItIs: (event) => left.size === 0 && event.includes('"type":"text_delta"') }
}

function documentOf(value: unknown): unknown {
  if (!isObject(value) || !(Array.isArray(value.content) || typeof value.content === 'string')) return value
  const content: readonly unknown[] = typeof value.content === 'string' ? [{ type: 'text', text: value.content }] : value.content
  const usage = { input_tokens: 0, output_tokens: 0, ...countsOf(value.usage) }
  return { ...headOf(value), type: 'message', content: content.flatMap((block) => blockOf(block) ?? []), ...stopOf(value), usage }
}

function headOf(message: unknown): Fields {
  const { id, model, usage } = isObject(message) ? message : {}
  return { id: textIn(id) || undefined, model: textIn(model) || undefined, usage: { input_tokens: 0, ...countsOf(usage) } }
}

function stopOf(value: unknown): Fields {
  const { stop_reason: reason, stop_sequence: sequence } = isObject(value) ? value : {}
  return { stop_reason: textIn(reason) || null, stop_sequence: textIn(sequence) || null }
}

/** @returns undefined for a block type that we do not use. A call without a name is still a call: the runtime tells the model. */
function blockOf(block: unknown): Fields | undefined {
  if (!isObject(block)) return undefined
  const { type, id, name, input } = block
  if (type === 'text') return { type, text: block.text ?? '' }
  if (type === 'thinking') return { type, thinking: block.thinking ?? '', signature: textIn(block.signature) }
  if (type === 'redacted_thinking' && typeof block.data === 'string') return { type, data: block.data }
  return type === 'tool_use' ? { type, id: textIn(id), name: textIn(name), input: input ?? {} } : undefined
}

/** Empties a block at its start; its initial text follows as a delta, because the library would ignore the text here. */
function opened(block: Fields): Fields {
  if (block.type === 'text') return { ...block, text: '' }
  if (block.type === 'thinking') return { ...block, thinking: '' }
  return block.type === 'tool_use' && !isObject(block.input) ? { ...block, input: {} } : block
}

function begun(index: unknown, block: Fields): readonly Fields[] {
  const delta = (said: Fields) => ({ type: 'content_block_delta', index, delta: said })
  if (block.type === 'text' && block.text !== '') return [delta({ type: 'text_delta', text: block.text })]
  if (block.type === 'thinking' && block.thinking !== '') return [delta({ type: 'thinking_delta', thinking: block.thinking })]
  const isWritten = block.type === 'tool_use' && !isObject(block.input)
  return isWritten ? [delta({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })] : []
}

function errorOf(error: unknown): Fields {
  const { type, message } = isObject(error) ? error : {}
  return { type: textIn(type) || 'error', message: textIn(message) || JSON.stringify(error) }
}
