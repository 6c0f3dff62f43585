/** The clocks of one chat: the caller's cancel, the total time, and how long the far side may stay silent while we wait for it. */

import { ProviderFailure } from '../runtime/port.ts'
import type { ProviderDeps } from './settings.ts'

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
  readonly deps: Pick<ProviderDeps, 'sleep' | 'now'>
}

export function startDeadline(options: Options): Deadline {
  const { provider, deps, totalS, idleS } = options
  const idleMs = idleS * 1000
  const chat = new AbortController()
  const clocks = new AbortController()
  const fail = (failure: ProviderFailure) => chat.abort(failure)
  const cancelled = () => fail(new ProviderFailure('aborted', `the call to provider "${provider}" was cancelled`, { provider }))
  let silentSince: number | undefined

  async function total(): Promise<void> {
    await rest(totalS * 1000)
    fail(new ProviderFailure('timeout', `provider "${provider}" took longer than total_timeout_s = ${totalS}`, { provider }))
  }

  async function idle(): Promise<void> {
    for (let wait = idleMs; wait > 0 && !clocks.signal.aborted; ) {
      await rest(wait)
      wait = silentSince === undefined ? idleMs : silentSince + idleMs - deps.now()
    }
    fail(new ProviderFailure('timeout', `provider "${provider}" sent nothing for idle_timeout_s = ${idleS}`, { provider }))
  }

  async function rest(ms: number): Promise<void> {
    await deps.sleep(Math.min(ms, longestTimer), clocks.signal).catch(() => {})
  }

  if (options.signal.aborted) cancelled()
  else options.signal.addEventListener('abort', cancelled, { once: true })
  void total()
  void idle()

  return {
    signal: chat.signal,
    waiting() {
      silentSince = deps.now()
    },
    heard() {
      silentSince = undefined
    },
    end() {
      options.signal.removeEventListener('abort', cancelled)
      chat.abort(new ProviderFailure('aborted', `the call to provider "${provider}" is over`, { provider }))
      clocks.abort()
    },
  }
}
