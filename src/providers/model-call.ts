/** Wraps a bare function as a provider, for tests and for models inside the caller's own program. */

import type { JsonObject } from '../kit/json.ts'
import type { Part } from '../runtime/event.ts'
import type { Message, ModelChunk, Provider, ToolSpec } from '../runtime/port.ts'
import { meteredProvider } from './metered.ts'
import { assertUsable } from './usable-reply.ts'

/** Pieces in their order of arrival. `done` is optional: the end of the generator also ends the reply. */
export type ModelPiece =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'thinking'; readonly content: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: JsonObject; readonly id?: string }
  | { readonly type: 'done' }

/** `system` is the system prompt. */
export type ModelCall = (
  messages: readonly Message[],
  tools: readonly ToolSpec[],
  signal: AbortSignal,
  about: { readonly system: string },
) => AsyncIterable<ModelPiece>

export function modelCallProvider(modelCall: ModelCall): Provider {
  const provider: Provider = {
    name: 'modelCall',
    capabilities: () => ({ streaming: true, tools: true, thinking: true, contextTokens: 0, pictures: true }),
    async *chat({ systemPrompt: system, messages, tools, model }, signal): AsyncGenerator<ModelChunk> {
      const parts: Part[] = []
      for await (const piece of modelCall(messages, tools, signal, { system })) {
        if (piece.type === 'done') break
        if (piece.type === 'tool_use')
          parts.push({ type: 'call', id: piece.id ?? `call_${parts.length + 1}`, name: piece.name, input: piece.input })
        else {
          parts.push({ type: piece.type, text: piece.content })
          yield { type: piece.type, text: piece.content }
        }
      }
      const calls = parts.some((part) => part.type === 'call')
      yield {
        type: 'done',
        response: { parts, stop: calls ? 'tool_calls' : 'stop', usage: { inputTokens: 0, outputTokens: 0 }, model, provider: 'modelCall' },
      }
    },
  }
  return meteredProvider(provider, { free: false })
}

/** Wraps a provider written by the caller; our own providers check their replies themselves. */
export function withUsableReplies(provider: Provider): Provider {
  return {
    name: provider.name,
    capabilities: () => provider.capabilities(),
    async *chat(request, signal) {
      for await (const chunk of provider.chat(request, signal))
        yield chunk.type === 'done' ? { type: 'done', response: assertUsable(chunk.response) } : chunk
    },
  }
}
