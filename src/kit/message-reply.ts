/** What answers on `brain_out` and `claw_out` say, found by their structure and never by searching their text. */

import { parseEchoed } from './echoed.ts'
import type { Json } from './json.ts'
import { type Fields, fieldsOf } from './wire.ts'

export type ToolUse = { readonly id: string; readonly name: string; readonly input?: unknown }

export type BrainReply = {
  /** It goes back to the brain as it came. */
  readonly content: unknown
  /** When there are any, the reply is a request for them; else when there is text, it is that. */
  readonly uses: readonly ToolUse[]
  readonly text: string
  /** Of a reply with neither: the word of a bridge (`timeout`, `fatal`), the vendor's error, or nothing that could be understood. */
  readonly error: unknown
}

/** A message of the Messages API, or `{"error": …}`. Tools are asked for when `stop_reason` says so, in `tool_use` blocks only. */
export function readReply(frame: string): BrainReply {
  const { error, content, stop_reason } = fieldsOf(parseEchoed(frame))
  const blocks = error === undefined && Array.isArray(content) ? content.map(fieldsOf) : []
  return {
    content,
    uses: stop_reason === 'tool_use' ? blocks.filter(isToolUse) : [],
    text: blocks.map(({ text }) => (typeof text === 'string' ? text : '')).join(''),
    error,
  }
}

function isToolUse(block: Fields): block is Fields & ToolUse {
  return block.type === 'tool_use' && typeof block.id === 'string' && typeof block.name === 'string'
}

/** The claw's list of tools as it sent it, or undefined when that is no JSON array. */
export function readTools(frame: string): readonly Json[] | undefined {
  const list = parseEchoed(frame)
  return Array.isArray(list) ? list : undefined
}
