/** Has the plane look at the clock about once a second, one look at a time. */

import { pause } from '../../../service/sleep.ts'

export type TickerOptions = {
  readonly tick: () => Promise<void>
  readonly everyMs: number
  readonly failed: (error: unknown) => void
}

export type Ticker = {
  /** Resolves when no look is under way any more. */
  stop(): Promise<void>
}

export function startTicker({ tick, everyMs, failed }: TickerOptions): Ticker {
  const over = new AbortController()
  const running = (async () => {
    while (!over.signal.aborted) {
      await pause(everyMs, over.signal)
      if (!over.signal.aborted) await tick().catch(failed)
    }
  })()
  return {
    stop() {
      over.abort()
      return running
    },
  }
}
