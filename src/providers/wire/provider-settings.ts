/** What a provider is told: its part of the resolved config, and what it may use of the world. */

import type { Log, Provider } from '../../runtime/port.ts'
import type { AskBrain } from '../fifo/fifo-provider.ts'
import type { Lane } from './lane.ts'

/** US dollars per million tokens. A cost is told only when `input` and `output` are known; `cached` falls back to `input`. */
export type Prices = { readonly input?: number; readonly output?: number; readonly cached?: number }

export type WireKind = 'openai-compatible' | 'anthropic' | 'openai'

export type WireConfig = {
  readonly kind: WireKind
  readonly model: string
  /** Needed for `openai-compatible`; the vendor's own address otherwise. */
  readonly baseUrl?: string
  /** Only named in messages: the value arrives in `apiKey`. */
  readonly apiKeyEnv?: string
  readonly apiKey?: string
  /** `false` asks for one JSON answer instead of an event stream. */
  readonly stream?: boolean
  /** Seconds of silence while we wait; seconds of a whole chat, retries and waits included. */
  readonly idleTimeoutS?: number
  readonly totalTimeoutS?: number
  readonly maxRetries?: number
  /** Calls at once for all that use this provider with this key. */
  readonly maxConcurrent?: number
  readonly maxResponseBytes?: number
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
  readonly contextTokens?: number
  readonly prices?: Prices
}

export type MockConfig = {
  readonly kind: 'mock'
  readonly model?: string
  /** A fixture file, relative to `deps.baseDir`; without one the offline helper answers. */
  readonly fixture?: string
  readonly totalTimeoutS?: number
  readonly prices?: Prices
}

export type StubConfig = { readonly kind: 'stub'; readonly model?: string }

export type FifoConfig = { readonly kind: 'fifo'; readonly model?: string; readonly dir: string; readonly totalTimeoutS?: number }

export type ReliableConfig = { readonly kind: 'reliable'; readonly providers: readonly string[] }

export type RouterConfig = {
  readonly kind: 'router'
  readonly default: string
  readonly routes?: { readonly [hint: string]: string }
}

export type ProviderConfig = WireConfig | MockConfig | StubConfig | FifoConfig | ReliableConfig | RouterConfig

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

export type CreateDeps = ProviderDeps & {
  provider(name: string): Promise<Provider>
  /** Of a stub: which of its agent's calls this is, from 1. */
  count(): number | Promise<number>
  /** Of a FIFO provider: questions to the other end of that folder's FIFOs. @throws ProviderFailure `bad_request` when there are none */
  brain(wanted: { readonly dir: string; readonly timeoutMs: number }): Promise<AskBrain>
}

export const defaults = {
  idleTimeoutS: 60,
  totalTimeoutS: 600,
  maxRetries: 2,
  maxConcurrent: 16,
  /** All waits between the attempts of one chat together. A longer Retry-After is not waited for. */
  maxRetryWaitMs: 30_000,
  maxResponseBytes: 1_048_576,
} as const
