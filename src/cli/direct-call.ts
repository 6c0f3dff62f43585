/** A provider without a model: it asks for one call and then falls silent, so that an operator's call takes the very path of a model's. */

import type { JsonObject } from '../kit/json.ts'
import type { Part } from '../runtime/event.ts'
import type { ModelChunk, Provider } from '../runtime/port.ts'

export function directCall(name: string, input: JsonObject): Provider {
  const call: Part = { type: 'call', id: 'operator', name, input }
  return {
    name: 'operator',
    capabilities: () => ({ streaming: false, tools: true, thinking: false, contextTokens: 0 }),
    async *chat({ messages }): AsyncGenerator<ModelChunk> {
      const asked = messages.at(-1)?.role === 'tool'
      const usage = { inputTokens: 0, outputTokens: 0 }
      yield {
        type: 'done',
        response: { parts: asked ? [] : [call], stop: asked ? 'stop' : 'tool_calls', usage, model: 'none', provider: 'operator' },
      }
    },
  }
}
