/** Runs one model call within the budgets: reserves the cost before the call, and settles it before the last chunk is returned. */

import { pictureTokens, tokensOf } from '../kit/content/tokens.ts'
import type { Usage } from '../runtime/event.ts'
import { type ChatRequest, type ModelChunk, type Provider, ProviderFailure, type Quote } from '../runtime/port.ts'
import { costsNothing } from '../runtime/usage.ts'
import type { Prices } from './wire/facts/model-facts.ts'
import { defaults } from './wire/provider-settings.ts'

export type Cost = {
  readonly provider: string
  /** Absent, or without one of its two prices: see `free`. */
  readonly prices?: Prices
  /** A call without known prices costs nothing if true; otherwise its price is unknown. */
  readonly free: boolean
  /** The longest answer, unless the request sets its own limit. */
  readonly maxOutputTokens?: number
  /** The longest answer that the model can give, if that is known. */
  readonly longestAnswer?: number
  readonly longestS?: number
}

/** Longest answer under a budget when no limit is set; without a budget, the provider decides. */
const usualOutputTokens = 16_384

/** A reservation covers a prompt that has a third more tokens than estimated. */
const reserve = 4 / 3

export async function* metered(
  request: ChatRequest,
  cost: Cost,
  ask: (request: ChatRequest) => AsyncIterable<ModelChunk>,
): AsyncGenerator<ModelChunk> {
  const { meter } = request
  if (!meter) return yield* ask(request)
  const { outputTokens, settle } = await meter(quoteOf(request, cost))
  const state: { used: Usage | 'nothing' | 'unknown'; shown: boolean } = { used: 'unknown', shown: false }
  let last: ModelChunk | undefined
  try {
    for await (const chunk of ask({ ...request, maxOutputTokens: outputTokens })) {
      if (chunk.type === 'done') {
        const { usage } = chunk.response
        state.used = isCounted(usage) ? usage : { ...usage, estimated: true }
        last = chunk
      } else {
        state.shown = true
        yield chunk
      }
    }
  } catch (error) {
    if (!state.shown && error instanceof ProviderFailure && costsNothing(error)) state.used = 'nothing'
    throw error
  } finally {
    await settle(state.used)
  }
  if (last) yield last
}

/** Adds budgets to a provider that keeps none itself. */
export function meteredProvider(provider: Provider, cost: Omit<Cost, 'provider'>): Provider {
  const whole = { provider: provider.name, ...cost }
  return { ...provider, chat: (request, signal) => metered(request, whole, (paid) => provider.chat(paid, signal)) }
}

/** Estimates the tokens of a prompt. */
export function promptTokens({ systemPrompt, tools, messages }: ChatRequest): number {
  const pictures = messages.flatMap((message) => (message.role === 'assistant' ? [] : (message.pictures ?? [])))
  const texts = pictures.length === 0 ? messages : messages.map((message) => (message.role === 'assistant' ? message : message.content))
  return tokensOf(JSON.stringify([systemPrompt, tools, texts])) + pictures.length * pictureTokens
}

function quoteOf(request: ChatRequest, { provider, prices = {}, free, maxOutputTokens, longestAnswer, longestS }: Cost): Quote {
  const { input, output, cached = 0, cacheWrite = 0 } = prices
  const known = input !== undefined && output !== undefined
  return {
    provider,
    model: request.model,
    inputTokens: Math.ceil(promptTokens(request) * reserve),
    outputTokens: request.maxOutputTokens ?? maxOutputTokens ?? Math.min(usualOutputTokens, longestAnswer ?? usualOutputTokens),
    prices: known ? { input: Math.max(input, cached, cacheWrite), output } : free ? { input: 0, output: 0 } : null,
    longestMs: (longestS ?? defaults.totalTimeoutS) * 1000,
  }
}

/** A server without token counts reports nothing or zero, and every prompt has tokens. */
function isCounted({ inputTokens, outputTokens, costMicros = 0, estimated }: Usage): boolean {
  return !estimated && inputTokens > 0 && outputTokens >= 0 && costMicros >= 0
}
