/** Refuses an unusable reply, so that no entrance mistakes it for an answer: a refusal, an empty reply, or a flood of calls. */

import { type ChatResponse, ProviderFailure } from '../runtime/port.ts'
import { callOf } from '../runtime/request/think.ts'
import { cut } from './wire/failure-of-response.ts'

/** Allows far more calls in one reply than a working model requests; each call costs a judgement, a receipt and a result. */
export const maxCalls = 256

/** @returns the reply, with its text and its calls beside `parts`. @throws ProviderFailure `refused`, `empty` or `bad_response` */
export function assertUsable(response: ChatResponse): ChatResponse {
  const { parts, stop, provider } = response
  const calls = parts.flatMap((part) => (part.type === 'call' ? [callOf(part)] : []))
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  if (stop === 'content_filter') throw new ProviderFailure('refused', refusal(provider, text), { provider })
  if (calls.length > maxCalls) {
    const flood = `provider "${provider}" asked for ${calls.length} tool calls in one reply; at most ${maxCalls} are taken, and none of them was run`
    throw new ProviderFailure('bad_response', flood, { provider })
  }
  if (calls.length === 0 && text.trim() === '') throw new ProviderFailure('empty', emptiness(response), { provider })
  return { ...response, final_text: text, tool_calls: calls }
}

/** The forms in which models write a call when their server does not read it: `<tool_call>`, `<function=…>`, `[TOOL_CALLS]`. */
const writtenCall =
  /^\s*(?:<\|?tool_calls?\b|<start_function_call>|<\|python_tag\|>|<function[=_]|\[TOOL_CALLS\]|<invoke\b)|<tool_call>\s*\{[^`]*\}\s*<\/tool_call>\s*$/

/** Refuses a reply to offered tools whose text is a call: printed as the answer, it would look like one. @throws ProviderFailure `bad_response` */
export function assertNoWrittenCall({ parts, provider, model }: ChatResponse): void {
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  if (parts.some(({ type }) => type === 'call') || !writtenCall.test(text)) return
  const says = `provider "${provider}" wrote a tool call as text, and nothing was run: its server does not read the calls of ${model}`
  const hint = `turn on tool calls at the server (of a Gemma: its dialect), or ask without tools: braidclaw -m ${provider}/${model} "…"`
  throw new ProviderFailure('bad_response', `${says}; ${hint} (${cut(text)})`, { provider })
}

function refusal(provider: string, text: string): string {
  const words = cut(text)
  return `provider "${provider}" refused to answer (refusal or content filter)${words === '' ? ' and gave no reason' : `: ${words}`}`
}

function emptiness({ parts, stop, provider }: ChatResponse): string {
  const thought = parts.some((part) => part.type === 'thinking' && part.text !== '') ? ', only thinking' : ''
  const limit = stop === 'length' ? ': it reached its output limit; raise max_output_tokens' : ''
  return `provider "${provider}" answered with nothing: no text and no tool call${thought}${limit}`
}
