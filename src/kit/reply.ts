/** What an answer on `brain_out` says, found by its structure and never by searching its text. */

import { type Fields, fieldsOf, parseJson } from './wire.ts'

export type ToolUse = { readonly id: string; readonly name: string; readonly input: Fields }

/**
 * `content` goes back to the brain as it came. `error` is the word of a bridge (`timeout`, `fatal`), or `bad` for anything else: an error
 * object of the vendor, text that is no JSON, a reply without text.
 */
export type BrainReply =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tools'; readonly content: readonly unknown[]; readonly uses: readonly ToolUse[] }
  | { readonly type: 'error'; readonly error: string }

/** A message of the Messages API, or `{"error": …}`. Tools are asked for when `stop_reason` says so, in `tool_use` blocks only. */
export function readReply(frame: string): BrainReply {
  const { error, content, stop_reason } = fieldsOf(parseJson(frame))
  if (error !== undefined || !Array.isArray(content)) return failed(error)
  const blocks = content.map(fieldsOf)
  const uses = stop_reason === 'tool_use' ? blocks.flatMap(toolUse) : []
  if (uses.length > 0) return { type: 'tools', content, uses }
  const text = blocks.map((block) => (typeof block.text === 'string' ? block.text : '')).join('')
  return text === '' ? failed(error) : { type: 'text', text }
}

function failed(error: unknown): BrainReply {
  return { type: 'error', error: typeof error === 'string' ? error : 'bad' }
}

function toolUse({ type, id, name, input }: Fields): ToolUse[] {
  return type === 'tool_use' && typeof id === 'string' && typeof name === 'string' ? [{ id, name, input: fieldsOf(input) }] : []
}
