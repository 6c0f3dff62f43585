/** Looks at a home again and again for all who wait for something that another process does: one timer, and none when nobody waits. */

/** Calls `look` at least every `everyMs` milliseconds. @returns a function that ends that */
export type HomePoll = (look: () => void, everyMs?: number) => () => void

/** A timer of this interval costs an idle process 0.2 % of a processor on a busy machine, and one of twice that a third of it. */
const usualMs = 150

export function createHomePoll(quickMs = usualMs): HomePoll {
  const waiting = new Map<() => void, number>()
  const state: { timer?: ReturnType<typeof setInterval>; ms: number } = { ms: 0 }

  /** The most impatient one sets the interval. */
  function adjust(): void {
    const ms = waiting.size === 0 ? 0 : Math.min(...waiting.values())
    if (ms === state.ms) return
    clearInterval(state.timer)
    state.ms = ms
    if (ms > 0)
      state.timer = setInterval(() => {
        for (const look of [...waiting.keys()]) look()
      }, ms)
  }

  return (look, everyMs = quickMs) => {
    waiting.set(look, everyMs)
    adjust()
    return () => {
      waiting.delete(look)
      adjust()
    }
  }
}
