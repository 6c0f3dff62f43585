/** Tries one provider again after a failure that may pass: jittered, bounded, logged, and never once a piece of the answer was shown. */

import type { FailureCode } from '../../runtime/event.ts'
import { type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import { defaults, type ProviderDeps } from './provider-settings.ts'

type Options = {
  readonly provider: string
  /** @param tries which attempt it is, from 1 */
  readonly attempt: (tries: number) => AsyncIterable<ModelChunk>
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly deps: Pick<ProviderDeps, 'log' | 'sleep' | 'random'>
  /** The next attempt waits by itself after what concerns all who use the same key. */
  readonly together?: boolean
}

/** Not `bad_response`: the same server says the same again. */
const passing: ReadonlySet<FailureCode> = new Set(['rate_limit', 'network', 'server'])

/** After a `timeout` of ours the waiting has been done; one that the server reports (408, 504) may pass. */
function mayPass({ code, detail }: ProviderFailure): boolean {
  return passing.has(code) || (code === 'timeout' && detail.status !== undefined)
}

/** Too many requests, or an overloaded server: the next who asks hears the same. */
export function concernsAll({ code, detail }: ProviderFailure): boolean {
  return code === 'rate_limit' || detail.status === 503 || detail.status === 529
}

/** @throws ProviderFailure the last one, its message with the number of attempts. */
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

/** 0.25–0.5 s, 0.5–1 s, 1–2 s, … to 8 s; a Retry-After is waited out in full, and a little longer so that not all come back at once. */
export function waitMs(at: { tries: number; failure: ProviderFailure; random: () => number }): number {
  const asked = at.failure.detail.retryAfterMs
  if (asked !== undefined) return asked + at.random() * 250
  return Math.min(8_000, 500 * 2 ** (at.tries - 1)) * (0.5 + at.random() / 2)
}

function named(failure: ProviderFailure, tries: number): ProviderFailure {
  return tries === 1 ? failure : new ProviderFailure(failure.code, `${failure.message} (after ${tries} attempts)`, failure.detail)
}
