/** Uses a provider as the model that summarises. */

import { type ChatResponse, type Provider, ProviderFailure } from '../../runtime/port.ts'
import type { Summarise, Summarised } from './compact.ts'
import type { SummaryRequest } from './summary-words.ts'

/** Sends the hint `cheap` for a router, and no tools. */
export function summariserOf({ provider, model }: { readonly provider: Provider; readonly model: string }): Summarise {
  return async (request, signal) => {
    try {
      return summaryIn(await answerOf(provider, { model, request }, signal))
    } catch (error) {
      if (error instanceof ProviderFailure) return { ok: false, message: error.message }
      throw error
    }
  }
}

async function answerOf(
  provider: Provider,
  { model, request }: { readonly model: string; readonly request: SummaryRequest },
  signal: AbortSignal,
): Promise<ChatResponse | undefined> {
  const messages = [{ role: 'user', content: request.text }] as const
  const metadata = { hint: 'cheap' }
  for await (const chunk of provider.chat(
    { systemPrompt: request.system, messages, tools: [], model, maxOutputTokens: request.maxTokens, metadata },
    signal,
  )) {
    if (chunk.type === 'done') return chunk.response
  }
  return undefined
}

function summaryIn(response: ChatResponse | undefined): Summarised {
  if (!response) return { ok: false, message: 'the stream of the model that summarises ended without an end' }
  const text = response.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return { ok: true, text, model: response.model, usage: response.usage, ...(response.stop === 'length' ? { cut: true } : {}) }
}
