/**
 * Implements a provider without a model: it requests one call and then stops, so that an operator's call takes the same path as a model's
 * call.
 */

import type { JsonObject } from '../../kit/json.ts'
import type { Call, Part } from '../../runtime/event.ts'
import type { ModelChunk, Provider } from '../../runtime/port.ts'

/** `heard` receives the tool result that a model would have received. */
export function directCall(requested: Pick<Call, 'name' | 'input' | 'malformed'>, onResult?: (result: string) => void): Provider {
  const call: Part = { type: 'call', id: 'operator', ...requested }
  return {
    name: 'operator',
    // No model reads the result.
    capabilities: () => ({ streaming: false, tools: true, thinking: false, contextTokens: 1_000_000_000 }),
    async *chat({ messages }): AsyncGenerator<ModelChunk> {
      const last = messages.at(-1)
      const asked = last?.role === 'tool'
      if (asked) onResult?.(last.content)
      yield operatorReply(asked ? [] : [call])
    },
  }
}

/** Returns the calls of an operator in the form of a model's reply. */
export function operatorReply(parts: readonly Part[]): ModelChunk {
  const usage = { inputTokens: 0, outputTokens: 0 }
  return { type: 'done', response: { parts, stop: parts.length > 0 ? 'tool_calls' : 'stop', usage, model: 'none', provider: 'operator' } }
}

/** Makes one provider for many calls, so that they form one conversation. */
export function repeatedCall() {
  const state = { current: directCall({ name: '', input: {} }) }
  return {
    next(name: string, input: JsonObject) {
      state.current = directCall({ name, input })
    },
    provider: { ...state.current, chat: (...asked: Parameters<Provider['chat']>) => state.current.chat(...asked) },
  }
}
