/** One attempt at one question over the network: what a dialect is given, and what it hands back. */

import type { ChatRequest, ChatResponse, ModelChunk } from '../../runtime/port.ts'
import type { Deadline } from './deadline.ts'
import type { Wire } from './exchange.ts'
import type { ProviderDeps, WireConfig } from './provider-settings.ts'
import type { Reported } from './usage.ts'

export type Talk = {
  readonly name: string
  readonly config: WireConfig
  readonly deps: ProviderDeps
  readonly request: ChatRequest
  readonly deadline: Deadline
  readonly wire: Wire
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly maxBytes: number
}

/** A reply that came to its end. `bytes` counts what the model said, not the framing around it. */
export type Reply = Pick<ChatResponse, 'parts' | 'stop' | 'model' | 'rawProviderPayload'> & {
  readonly usage: Reported
  readonly bytes: number
}

/** Both may throw anything; `wired.ts` makes a ProviderFailure of it. Not a generator: each layer of those costs a microsecond a chunk. */
export type Exchange = {
  /** The next piece as it arrives; undefined at the end. */
  next(): Promise<ModelChunk | undefined>
  /** To be asked once, after the end. */
  reply(): Reply
}

/** Sends the question; resolves when the answer begins. */
export type Converse = (talk: Talk) => Promise<Exchange>
