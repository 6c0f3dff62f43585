/** Asks a server under limits of time, and says in one sentence what went wrong; a server that cannot go on is ended. */

import { type Client, ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from '@modelcontextprotocol/client'
import { aborted } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { cut, visible } from '../../kit/text.ts'
import type { McpFailure } from '../contract.ts'
import { ClientLoginError } from './oauth.ts'
import type { Link } from './transports.ts'

/** `limits` are passed to each request; `hold(true)` stops the clock, `hold(false)` starts it again. */
export type TimedRequest = { readonly limits: { readonly signal: AbortSignal; readonly timeout: number }; hold(waits: boolean): void }

const [forever, pingMs] = [2 ** 31 - 1, 5_000]

export function createExchange(client: Client, link: Link, closed: AbortSignal) {
  let open = 0

  /** A server may stay silent after a cancelled call; one that does not even answer this is ended. */
  async function checkThatItLives(): Promise<void> {
    const isModern = client.getProtocolEra() === 'modern'
    const alive = isModern ? client.discover({ timeout: pingMs }) : client.ping({ timeout: pingMs })
    await alive.catch((error: unknown) => {
      const isSilent = error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout
      if (isSilent) link.stop('it answered neither a cancelled call nor the question whether it is well')
    })
  }

  return async <T>(signal: AbortSignal, idleMs: number, work: (asking: TimedRequest) => Promise<T>): Promise<T | McpFailure> => {
    if (closed.aborted) return { why: String(closed.reason) }
    if (open++ === 0) link.expect()
    const late = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const hold = (waits: boolean) => {
      clearTimeout(timer)
      if (!waits) timer = setTimeout(() => late.abort(), idleMs)
    }
    hold(false)
    const over = AbortSignal.any([signal, late.signal, closed])
    try {
      const ended = aborted(over).then(() => Promise.reject(new Error('it ended')))
      return await Promise.race([work({ limits: { signal: over, timeout: forever }, hold }), ended])
    } catch (error) {
      if (closed.aborted) return { why: String(closed.reason) }
      if (late.signal.aborted) link.stop(`it gave no answer within ${idleMs / 1_000} s, so it was ended`)
      if (late.signal.aborted) return { why: String(closed.reason) }
      if (signal.aborted) void checkThatItLives()
      if (signal.aborted) return { why: 'the call was cancelled' }
      const failure = failureOf(error)
      if (isBroken(error)) link.stop(failure.why)
      return failure
    } finally {
      clearTimeout(timer)
      open--
    }
  }
}

/** The way to the server is broken, or it has forgotten the session: only another connection helps. */
function isBroken(error: unknown): boolean {
  if (error instanceof SdkHttpError) return error.data.status === 404
  return ![SdkError, ProtocolError, UnauthorizedError, RangeError].some((kind) => error instanceof kind)
}

/** Says in a sentence that begins with "it" what the server, or the way to it, did. */
export function failureOf(error: unknown): McpFailure {
  const status = error instanceof SdkHttpError ? error.data.status : undefined
  if (error instanceof UnauthorizedError || status === 401 || status === 403) return { why: 'it asks for a login', needsLogin: true }
  if (error instanceof ClientLoginError) return { why: cut(visible(error.message), 700) }
  if (status !== undefined) return { why: `it answered with HTTP status ${status}; check its address` }
  if (error instanceof RangeError) return { why: 'it answered with data that is nested too deeply to be read' }
  const said = cut(visible(errorText(error)), 300)
  if (error instanceof ProtocolError) return { why: `it answered with the error ${error.code}: ${said}` }
  const isUnreached = !(error instanceof SdkError) || /probe failed: (?!the server)/.test(said)
  return { why: isUnreached ? `it cannot be reached: ${said}` : `it broke the protocol: ${said}` }
}
