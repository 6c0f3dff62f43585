/** Polls a home for everything that waits for another process: one timer, and none when nothing waits. */

/** Calls `check` at least every `everyMs` milliseconds. @returns a function that ends that */
export type HomePoll = (check: () => void, everyMs?: number) => () => void

/** A timer of this interval costs an idle process 0.2 % of a processor on a busy machine, and one of twice that a third of it. */
const usualMs = 150

export function createHomePoll(quickMs = usualMs): HomePoll {
  const waiting = new Map<() => void, number>()
  const state: { timer?: ReturnType<typeof setInterval>; ms: number } = { ms: 0 }

  /** Sets the interval to the shortest one requested. */
  function adjust(): void {
    const ms = waiting.size === 0 ? 0 : Math.min(...waiting.values())
    if (ms === state.ms) return
    clearInterval(state.timer)
    state.ms = ms
    if (ms > 0)
      state.timer = setInterval(() => {
        for (const check of [...waiting.keys()]) check()
      }, ms)
  }

  return (check, everyMs = quickMs) => {
    waiting.set(check, everyMs)
    adjust()
    return () => {
      waiting.delete(check)
      adjust()
    }
  }
}
