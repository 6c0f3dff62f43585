/** Reads the answers on `brain_out` and `claw_out` by their structure; it never searches their text. */

import { parseEchoed } from './echoed.ts'
import type { Json } from './json.ts'
import { type Fields, fieldsOf } from './wire.ts'

export type ToolUse = { readonly id: string; readonly name: string; readonly input?: unknown }

export type BrainReply = ReturnType<typeof readReply>

/** Reads a message of the Messages API, or `{"error": …}`. It looks for `tool_use` blocks only if `stop_reason` announces them. */
export function readReply(frame: string) {
  const { error, content, stop_reason } = fieldsOf(parseEchoed(frame))
  const blocks = error === undefined && Array.isArray(content) ? content.map(fieldsOf) : []
  return {
    /** The runtime sends it back to the brain unchanged. */
    content,
    /** If there are any, the reply requests these tools; otherwise a non-empty `text` is the answer. */
    uses: stop_reason === 'tool_use' ? blocks.filter(isToolUse) : [],
    text: blocks.map(({ text }) => (typeof text === 'string' ? text : '')).join(''),
    /** Set when the reply has neither tools nor text: the bridge's own code (`timeout`, `fatal`), the vendor's error, or undefined. */
    error,
  }
}

function isToolUse(block: Fields): block is Fields & ToolUse {
  return block.type === 'tool_use' && typeof block.id === 'string' && typeof block.name === 'string'
}

/** Returns the claw's list of tools unchanged, or undefined when the frame is not a JSON array. */
export function readTools(frame: string): readonly Json[] | undefined {
  const list = parseEchoed(frame)
  return Array.isArray(list) ? list : undefined
}
