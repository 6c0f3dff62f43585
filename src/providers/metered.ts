/** One attempt at an answer within the budgets: reserved before it begins, settled before its end is told. */

import type { Usage } from '../runtime/event.ts'
import { type ChatRequest, type ModelChunk, type Provider, ProviderFailure, type Quote } from '../runtime/port.ts'
import { defaults, type Prices } from './wire/provider-settings.ts'

export type Cost = {
  readonly provider: string
  /** Absent, or without one of its two prices: see `free`. */
  readonly prices?: Prices
  /** Costs nothing where no price is given; else the price is not known. */
  readonly free: boolean
  /** The longest answer unless the request says otherwise. */
  readonly maxOutputTokens?: number
  readonly longestS?: number
}

/** How long an answer may be under a budget when nobody says; without a budget that is the provider's own affair. */
const usualOutputTokens = 16_384

/** Bytes of a prompt a token, at the least that is usual; English has four. */
const bytesAToken = 3

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
        state.used = isCounted(chunk.response.usage) ? chunk.response.usage : 'unknown'
        last = chunk
      } else {
        state.shown = true
        yield chunk
      }
    }
  } catch (error) {
    if (!state.shown && costNothing(error)) state.used = 'nothing'
    throw error
  } finally {
    await settle(state.used)
  }
  if (last) yield last
}

/** A provider that keeps no budgets by itself. */
export function meteredProvider(provider: Provider, cost: Omit<Cost, 'provider'>): Provider {
  const whole = { provider: provider.name, ...cost }
  return { ...provider, chat: (request, signal) => metered(request, whole, (paid) => provider.chat(paid, signal)) }
}

function quoteOf(request: ChatRequest, { provider, prices = {}, free, maxOutputTokens, longestS }: Cost): Quote {
  const { input, output, cached = 0 } = prices
  const known = input !== undefined && output !== undefined
  return {
    provider,
    inputTokens: Math.ceil(Buffer.byteLength(JSON.stringify([request.systemPrompt, request.tools, request.messages])) / bytesAToken),
    outputTokens: request.maxOutputTokens ?? maxOutputTokens ?? usualOutputTokens,
    prices: known ? { input: Math.max(input, cached), output } : free ? { input: 0, output: 0 } : null,
    longestMs: (longestS ?? defaults.totalTimeoutS) * 1000,
  }
}

/** Whoever counts nothing says nothing or zero; nobody sends a prompt of no tokens. */
function isCounted({ inputTokens, outputTokens, costMicros = 0, estimated }: Usage): boolean {
  return !estimated && inputTokens > 0 && outputTokens >= 0 && costMicros >= 0
}

/** Refused before any answer began, or never reached: nobody bills that. A time limit of the far side may have come too late. */
function costNothing(error: unknown): boolean {
  if (!(error instanceof ProviderFailure)) return false
  const { status, unsent } = error.detail
  return unsent === true || (status !== undefined && status !== 408 && status !== 504) || free.has(error.code)
}

const free: ReadonlySet<ProviderFailure['code']> = new Set(['auth', 'rate_limit', 'bad_request', 'context_length'])
