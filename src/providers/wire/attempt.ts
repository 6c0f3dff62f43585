/** Defines one attempt at one request over the network: the input of a dialect, and its result. */

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
  /** Has no trailing slash. */
  readonly baseUrl: string
  readonly maxBytes: number
}

/** A complete reply. `bytes` counts the model's own text, without the framing around it. */
export type WireReply = Pick<ChatResponse, 'parts' | 'stop' | 'model' | 'rawProviderPayload'> & {
  readonly usage: Reported
  readonly bytes: number
}

/**
 * Both functions may throw anything; `http-provider.ts` turns it into a ProviderFailure. Not a generator, because each generator layer
 * costs a microsecond per chunk.
 */
export type Exchange = {
  /** Returns the next piece as it arrives; undefined at the end. */
  next(): Promise<ModelChunk | undefined>
  /** Call once, after the end. */
  reply(): WireReply
}

/** Sends the request; resolves when the answer begins. */
export type Converse = (talk: Talk) => Promise<Exchange>
