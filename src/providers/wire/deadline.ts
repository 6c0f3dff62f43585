/** Ends a chat by the caller's cancel, by the total time limit, or when the server stays silent too long while we wait for it. */

import { ProviderFailure } from '../../runtime/port.ts'
import { longestTimer } from './lane.ts'
import type { ProviderDeps } from './provider-settings.ts'

export type Deadline = ReturnType<typeof startDeadline>

export function startDeadline(options: {
  readonly provider: string
  readonly signal: AbortSignal
  readonly totalS: number
  readonly idleS: number
  readonly deps: Pick<ProviderDeps, 'sleep' | 'monotonic'>
}) {
  const { provider, deps, totalS, idleS } = options
  const idleMs = idleS * 1000
  const { monotonic = () => performance.now() } = deps
  const chat = new AbortController()
  const stopped = new AbortController()
  const fail = (failure: ProviderFailure) => chat.abort(failure)
  const cancelled = () => fail(new ProviderFailure('aborted', `the call to provider "${provider}" was cancelled`, { provider }))
  let silentSince: number | undefined

  /** One timer serves both limits: it sleeps as long as neither can expire. */
  async function clock(): Promise<void> {
    for (let left = totalS * 1000; ; ) {
      const quiet = silentSince === undefined ? idleMs : silentSince + idleMs - monotonic()
      if (!(left > 0)) return late(`took longer than total_timeout_s = ${totalS}`)
      if (!(quiet > 0)) return late(`sent nothing for idle_timeout_s = ${idleS}`)
      const [wait, since] = [Math.min(left, quiet, longestTimer), performance.now()]
      await deps.sleep(wait, stopped.signal).catch(() => {})
      if (stopped.signal.aborted) return
      // A busy or stopped process wakes late.
      left -= Math.max(wait, performance.now() - since)
    }
  }
  const late = (what: string) => fail(new ProviderFailure('timeout', `provider "${provider}" ${what}`, { provider }))

  if (options.signal.aborted) cancelled()
  else options.signal.addEventListener('abort', cancelled, { once: true })
  void clock()

  return {
    /** Aborts with a ProviderFailure: `aborted` (our own) or `timeout`. */
    signal: chat.signal,
    /** Starts a wait for the server; `arrived` ends it. Silence outside a wait does not count. */
    waiting(): void {
      silentSince = monotonic()
    },
    arrived(): void {
      silentSince = undefined
    },
    end(): void {
      options.signal.removeEventListener('abort', cancelled)
      chat.abort(new ProviderFailure('aborted', `the call to provider "${provider}" is over`, { provider }))
      stopped.abort()
    },
  }
}
