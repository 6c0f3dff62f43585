/** Limits how many turns run at once in a process: turns beyond the limit wait and start in order of arrival. */

export type TurnQueue = ReturnType<typeof createTurnQueue>

type Waiting = { readonly limit: number; readonly go: () => void }

export function createTurnQueue() {
  const waiting = new Set<Waiting>()
  const state = { running: 0 }

  /** Starts waiting turns from the front; no turn overtakes another. */
  function next(): void {
    for (const each of waiting) {
      if (state.running >= each.limit) return
      begin()
      waiting.delete(each)
      each.go()
    }
  }

  function begin(): void {
    state.running += 1
  }

  function leaving(): () => void {
    const turn = { over: false }
    return () => {
      if (turn.over) return
      turn.over = true
      state.running -= 1
      next()
    }
  }

  return {
    depth: () => ({ running: state.running, waiting: waiting.size }),
    /** @returns a function that ends the turn; undefined when the signal was aborted while the turn waited */
    async enter(limit: number, signal: AbortSignal): Promise<(() => void) | undefined> {
      if (signal.aborted) return undefined
      if (waiting.size === 0 && state.running < limit) {
        begin()
        return leaving()
      }
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>()
      const mine: Waiting = { limit, go: () => resolve(leaving()) }
      waiting.add(mine)
      const giveUp = () => {
        if (!waiting.delete(mine)) return
        resolve(undefined)
        next()
      }
      signal.addEventListener('abort', giveUp, { once: true })
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
  }
}
