/** The clocks of one chat: the caller's cancel, the total time, and how long the far side may stay silent while we wait for it. */

import { ProviderFailure } from '../../runtime/port.ts'
import type { ProviderDeps } from './provider-settings.ts'

export type Deadline = {
  /** Aborted with a ProviderFailure: `aborted` (ours) or `timeout`. */
  readonly signal: AbortSignal
  /** Brackets a wait for the far side; silence outside them is not its fault. */
  waiting(): void
  heard(): void
  end(): void
}

/** Timers take 31 bits; a longer wait would fire at once. */
const longestTimer = 2_147_483_647

type Options = {
  readonly provider: string
  readonly signal: AbortSignal
  readonly totalS: number
  readonly idleS: number
  readonly deps: Pick<ProviderDeps, 'sleep' | 'monotonic'>
}

export function startDeadline(options: Options): Deadline {
  const { provider, deps, totalS, idleS } = options
  const idleMs = idleS * 1000
  const { monotonic = () => performance.now() } = deps
  const chat = new AbortController()
  const stopped = new AbortController()
  const fail = (failure: ProviderFailure) => chat.abort(failure)
  const cancelled = () => fail(new ProviderFailure('aborted', `the call to provider "${provider}" was cancelled`, { provider }))
  let silentSince: number | undefined

  /** One clock for both: it sleeps for as long as neither can be over. */
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
    signal: chat.signal,
    waiting() {
      silentSince = monotonic()
    },
    heard() {
      silentSince = undefined
    },
    end() {
      options.signal.removeEventListener('abort', cancelled)
      chat.abort(new ProviderFailure('aborted', `the call to provider "${provider}" is over`, { provider }))
      stopped.abort()
    },
  }
}
