/** Defines the settings and the dependencies of a provider that uses HTTP, and how the three protocols differ before a request. */

import type { Values } from '../../kit/settings.ts'
import type { ChatRequest, Log, ProviderFailure } from '../../runtime/port.ts'
import { type prices, wireRows } from '../rows.ts'
import type { Prices } from './facts/model-facts.ts'
import type { Lane } from './lane.ts'

export type WireKind = 'openai-compatible' | 'anthropic' | 'openai' | 'plugin'

/** The table of a provider that uses HTTP, with its key filled in. */
export type WireConfig = Partial<Values<typeof wireRows>> & {
  readonly kind: WireKind
  readonly model: string
  readonly dialect?: 'functiongemma' | 'gemma4'
  readonly apiKey?: string
  readonly maxResponseBytes?: number
  /** The longest answer that the model can give; `maxOutputTokens` is the longest that is asked for. */
  readonly longestAnswer?: number
  /** The kinds of content that the model takes, if they are known. */
  readonly sees?: readonly string[] | undefined
}

/** Reads the prices from a table with the price rows. */
export function pricesOf({ priceInput, priceOutput, priceCached, priceCacheWrite }: Values<typeof prices>): Prices {
  return { input: priceInput, output: priceOutput, cached: priceCached, cacheWrite: priceCacheWrite }
}

/** A summary or a judgement, which sets a hint or a temperature, is short: it reasons as much as the vendor thinks right. */
export function effortOf({ metadata, temperature }: ChatRequest, { effort }: WireConfig): WireConfig['effort'] {
  return metadata === undefined && temperature === undefined ? effort : undefined
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
  /** Adds to the refusal of a model those that the server has; returns another refusal as it is. */
  withModels?(refusal: ProviderFailure): Promise<ProviderFailure>
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

/** The address of a protocol, the name of its key, and the headers that carry the key. */
type Vendor = {
  /** Undefined when there is no default server. */
  readonly baseUrl?: string
  readonly keyEnv: string
  readonly contextTokens: number
  /** Returns the headers that carry the key on a plain request. */
  headers(apiKey: string): { readonly [name: string]: string }
}

export const vendors: { readonly [kind in WireKind]: Vendor } = {
  'openai-compatible': { keyEnv: 'OPENAI_API_KEY', contextTokens: 32_768, headers: bearer },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    keyEnv: 'ANTHROPIC_API_KEY',
    contextTokens: 200_000,
    headers: (apiKey) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  },
  // No address: the fetch of a plugin reaches its process.
  plugin: { baseUrl: 'http://plugin/v1', keyEnv: '', contextTokens: 32_768, headers: bearer },
  openai: { baseUrl: 'https://api.openai.com/v1', keyEnv: 'OPENAI_API_KEY', contextTokens: 128_000, headers: bearer },
}

export function baseUrlOf(config: WireConfig): string | undefined {
  const url = config.baseUrl ?? vendors[config.kind].baseUrl
  return url === undefined ? undefined : withoutSlashes(url)
}

function withoutSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}

export function keyHint(config: WireConfig): string {
  if (config.kind === 'plugin') return 'check the variables of the plugin'
  return `check the key in ${config.apiKeyEnv ?? vendors[config.kind].keyEnv} (api_key_env)`
}

function bearer(apiKey: string): { readonly [name: string]: string } {
  return { authorization: `Bearer ${apiKey}` }
}
