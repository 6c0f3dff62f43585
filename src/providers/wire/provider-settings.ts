/** Defines the settings and the dependencies of a provider that uses HTTP. */

import type { Values } from '../../kit/settings.ts'
import type { Log } from '../../runtime/port.ts'
import { type prices, wireRows } from '../rows.ts'
import type { Prices } from './facts/model-facts.ts'
import type { Lane } from './lane.ts'

export type WireKind = 'openai-compatible' | 'anthropic' | 'openai'

/** The table of a provider that uses HTTP, with its key filled in. */
export type WireConfig = Partial<Values<typeof wireRows>> & {
  readonly kind: WireKind
  readonly model: string
  readonly apiKey?: string
  readonly maxResponseBytes?: number
  /** The longest answer that the model can give; `maxOutputTokens` is the longest that is asked for. */
  readonly longestAnswer?: number
}

/** Reads the prices from a table with the price rows. */
export function pricesOf({ priceInput, priceOutput, priceCached, priceCacheWrite }: Values<typeof prices>): Prices {
  return { input: priceInput, output: priceOutput, cached: priceCached, cacheWrite: priceCacheWrite }
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type ProviderDeps = {
  readonly fetch: Fetch
  readonly log: Log
  /** Resolves after `ms`, or at once (resolved or rejected) when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  random(): number
  /** Shared by all users of the same provider with the same key; absent when there is no other user. */
  readonly lane?: Lane
  now(): number
  /** Measures durations with a clock that nobody can set, in milliseconds; absent: the clock of the process. */
  monotonic?(): number
  /** The base folder of relative fixture paths. */
  readonly baseDir?: string
}

export const defaults = {
  idleTimeoutS: wireRows.idle_timeout_s.default,
  totalTimeoutS: wireRows.total_timeout_s.default,
  maxRetries: wireRows.max_retries.default,
  maxConcurrent: wireRows.max_concurrent.default,
  /** Limits the sum of all waits between the attempts of one chat. A longer Retry-After fails at once. */
  maxRetryWaitMs: 30_000,
  maxResponseBytes: 1_048_576,
} as const
