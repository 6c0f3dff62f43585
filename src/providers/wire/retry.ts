/** Retries one provider after a temporary failure, with jitter, a limit and a log entry, but never after it showed part of an answer. */

import type { FailureCode } from '../../runtime/event.ts'
import { type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import { defaults, type ProviderDeps } from './provider-settings.ts'

type Options = {
  readonly provider: string
  /** @param tries the number of the attempt, from 1 */
  readonly attempt: (tries: number) => AsyncIterable<ModelChunk>
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly deps: Pick<ProviderDeps, 'log' | 'sleep' | 'random'>
  /** The next attempt itself waits after a failure that concerns all users of the same key. */
  readonly together?: boolean
}

/** Excludes `bad_response`, because the same server answers the same way again, unless it is the first part of a reply. */
const passing: ReadonlySet<FailureCode> = new Set(['rate_limit', 'network', 'server'])

/** After our own `timeout`, we have already waited; a timeout that the server reports (408, 504) may be temporary. */
function mayPass({ code, detail }: ProviderFailure): boolean {
  return passing.has(code) || detail.unfinished === true || (code === 'timeout' && detail.status !== undefined)
}

/** Too many requests, or an overloaded server: the next call would get the same answer. */
export function concernsAll({ code, detail }: ProviderFailure): boolean {
  return code === 'rate_limit' || detail.status === 503 || detail.status === 529
}

/** @throws ProviderFailure the last failure, with the number of attempts in its message */
export async function* withRetry(options: Options): AsyncGenerator<ModelChunk> {
  const { provider, deps, signal } = options
  let waited = 0
  for (let tries = 1; ; tries++) {
    let shown = false
    try {
      for await (const chunk of options.attempt(tries)) {
        shown = true
        yield chunk
      }
      return
    } catch (error) {
      if (!(error instanceof ProviderFailure)) throw error
      const wait = waitMs({ tries, failure: error, random: deps.random })
      const again = !shown && mayPass(error) && tries <= options.maxRetries && waited + wait <= defaults.maxRetryWaitMs
      if (!again || signal.aborted) throw named(error, tries)
      waited += wait
      deps.log('warn', 'provider retry', { provider, attempt: tries, code: error.code, message: error.message, waitMs: Math.round(wait) })
      if (!(options.together && concernsAll(error))) await deps.sleep(wait, signal).catch(() => {})
      if (signal.aborted) throw signal.reason
    }
  }
}

/** 0.25–0.5 s, 0.5–1 s, 1–2 s, … up to 8 s. It waits the whole Retry-After and a little longer, so that not all calls return at once. */
export function waitMs(at: { tries: number; failure: ProviderFailure; random: () => number }): number {
  const asked = at.failure.detail.retryAfterMs
  if (asked !== undefined) return asked + at.random() * 250
  return Math.min(8_000, 500 * 2 ** (at.tries - 1)) * (0.5 + at.random() / 2)
}

function named(failure: ProviderFailure, tries: number): ProviderFailure {
  return tries === 1 ? failure : new ProviderFailure(failure.code, `${failure.message} (after ${tries} attempts)`, failure.detail)
}
