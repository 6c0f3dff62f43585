/** Looks at a home again and again for all who wait for something that another process does: one timer, and none when nobody waits. */

/** Calls `look` at each interval. @returns a function that ends that */
export type HomePoll = (look: () => void) => () => void

/** The interval in milliseconds. */
const lookMs = 150

export function createHomePoll(everyMs = lookMs): HomePoll {
  const waiting = new Set<() => void>()
  const state: { timer?: ReturnType<typeof setInterval> } = {}
  return (look) => {
    waiting.add(look)
    state.timer ??= setInterval(() => {
      for (const each of [...waiting]) each()
    }, everyMs)
    return () => {
      waiting.delete(look)
      if (waiting.size > 0) return
      clearInterval(state.timer)
      delete state.timer
    }
  }
}
