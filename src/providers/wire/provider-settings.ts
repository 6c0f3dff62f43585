/** What a provider behind HTTP is told: its part of the resolved config, and what it may use of the world. */

import type { Values } from '../../kit/settings.ts'
import type { Log } from '../../runtime/port.ts'
import { type prices, wireRows } from '../rows.ts'
import type { Lane } from './lane.ts'

/** US dollars per million tokens. A cost is told only when `input` and `output` are known; `cached` falls back to `input`. */
export type Prices = { readonly input?: number; readonly output?: number; readonly cached?: number }

export type WireKind = 'openai-compatible' | 'anthropic' | 'openai'

/** The table of a provider behind HTTP, its key filled in. */
export type WireConfig = Partial<Values<typeof wireRows>> & {
  readonly kind: WireKind
  readonly model: string
  readonly apiKey?: string
  readonly maxResponseBytes?: number
}

/** Of a table with the rows of prices. */
export function pricesOf({ priceInput, priceOutput, priceCached }: Values<typeof prices>): Prices {
  return { input: priceInput, output: priceOutput, cached: priceCached }
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type ProviderDeps = {
  readonly fetch: Fetch
  readonly log: Log
  /** Resolves after `ms`, or at once (resolved or rejected) when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  random(): number
  /** Shared by all that use the same provider with the same key; absent: nobody else does. */
  readonly lane?: Lane
  now(): number
  /** For what has lasted: nobody sets this clock. In milliseconds; absent: the process's own. */
  monotonic?(): number
  /** Where relative fixture paths start. */
  readonly baseDir?: string
}

export const defaults = {
  idleTimeoutS: wireRows.idle_timeout_s.default,
  totalTimeoutS: wireRows.total_timeout_s.default,
  maxRetries: wireRows.max_retries.default,
  maxConcurrent: wireRows.max_concurrent.default,
  /** All waits between the attempts of one chat together. A longer Retry-After is not waited for. */
  maxRetryWaitMs: 30_000,
  maxResponseBytes: 1_048_576,
} as const
