/** Reads one reply body within the timeouts and limits. It pulls each piece, so that a slow reader slows the server down. */

import { errnoOf, errorText } from '../../kit/errors.ts'
import { ProviderFailure } from '../../runtime/port.ts'
import type { Deadline } from './deadline.ts'
import { cut } from './failure-of-response.ts'

export type BodyLimits = {
  readonly provider: string
  readonly deadline: Deadline
  /** Limit of the reply itself. The framing may use 256 times as much, and one line eight times as much (escapes). */
  readonly maxBytes: number
}

export type Body = ReturnType<typeof openBody>

export const errorBodyBytes = 65_536

export function lineLimit(maxBytes: number): number {
  return maxBytes * 8 + errorBodyBytes
}

export function tooLarge(limits: Pick<BodyLimits, 'provider' | 'maxBytes'>): ProviderFailure {
  const { provider, maxBytes } = limits
  return new ProviderFailure('too_large', `the reply of provider "${provider}" is larger than max_response_bytes = ${maxBytes}`, {
    provider,
  })
}

/** Turns a broken connection into a failure; an error that we threw on purpose (a limit, a timeout, a cancel) stays unchanged. */
export function networkFailure(at: { error: unknown; provider: string; signal: AbortSignal; doing: string }): unknown {
  if (at.error instanceof ProviderFailure) return at.error
  if (at.signal.aborted) return at.signal.reason
  const message = `provider "${at.provider}": could not ${at.doing}: ${cut(errorText(at.error))}`
  return new ProviderFailure('network', message, { provider: at.provider, unsent: isUnreached(at.error) })
}

/** Error codes of Bun and of the system for a connection that was never established. */
function isUnreached(error: unknown): boolean {
  return ['ConnectionRefused', 'ECONNREFUSED', 'FailedToOpenSocket', 'ENOTFOUND', 'EAI_AGAIN'].includes(errnoOf(error) ?? '')
}

export function openBody(at: {
  limits: BodyLimits
  body: ReadableStream<Uint8Array> | null
  signal: AbortSignal
  disconnected: Promise<never>
}) {
  const { limits, signal, disconnected } = at
  const reader = at.body?.getReader()
  const peeked: Uint8Array[] = []
  let total = 0
  let line = 0
  let isOver = false
  signal.addEventListener('abort', () => close(signal.reason), { once: true })

  function close(reason: unknown): void {
    reader?.cancel(reason).catch(() => {})
  }

  async function pull(): Promise<Uint8Array | undefined> {
    if (reader === undefined) return undefined
    limits.deadline.waiting()
    try {
      const { done, value } = await reader.read()
      if (value !== undefined) count(value)
      // A body that we closed ourselves did not end: the rest never arrived.
      if (done && signal.aborted) throw signal.reason
      isOver = done
      return done ? undefined : value
    } catch (error) {
      throw networkFailure({ error, provider: limits.provider, signal, doing: 'read the reply to its end' })
    } finally {
      limits.deadline.arrived()
    }
  }

  function count(bytes: Uint8Array): void {
    const newline = bytes.lastIndexOf(10)
    total += bytes.length
    line = newline < 0 ? line + bytes.length : bytes.length - newline - 1
    if (total > limits.maxBytes * 256 + errorBodyBytes || line > lineLimit(limits.maxBytes)) throw tooLarge(limits)
  }

  /** Returns one piece as it arrives; undefined at the end. */
  function next(): Promise<Uint8Array | undefined> {
    return peeked.length > 0 ? Promise.resolve(peeked.shift()) : pull()
  }

  return {
    /** Returns the first character that is not white space; '' when the body ends before one. */
    async peek(): Promise<string> {
      for (let spaces = 0; spaces <= errorBodyBytes; ) {
        const bytes = await Promise.race([pull(), disconnected])
        if (bytes === undefined) return ''
        peeked.push(bytes)
        const first = new TextDecoder().decode(bytes.subarray(0, 1024)).trimStart()[0]
        if (first !== undefined) return first
        spaces += bytes.length
      }
      return ''
    },
    /** Returns the whole body as text, or its first `limit` bytes and a little more. */
    async text(limit: number): Promise<{ readonly text: string; readonly whole: boolean }> {
      const chunks: Uint8Array[] = []
      for (let size = 0; size <= limit; ) {
        const bytes = await Promise.race([next(), disconnected])
        if (bytes === undefined) return { text: decode(chunks), whole: true }
        chunks.push(bytes)
        size += bytes.length
      }
      return { text: decode(chunks), whole: false }
    },
    next,
    /** Returns whether the body was read to its end, so that no transfer is active. */
    ended: () => isOver,
    close,
  }
}

function decode(chunks: readonly Uint8Array[]): string {
  return new TextDecoder().decode(Buffer.concat(chunks))
}
