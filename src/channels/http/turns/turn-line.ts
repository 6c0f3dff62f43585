/** Lets one turn at a time into each conversation; the others wait in order of arrival, and a few at most. */

import { HttpError } from '../../../http/http-error.ts'

export type TurnLine = {
  /**
   * Resolves with a function that ends the turn; undefined when the signal was aborted while it waited. @throws HttpError 429 when too many
   * wait
   */
  enter(key: string, signal: AbortSignal): Promise<(() => void) | undefined>
}

export function createTurnLine(most = 16): TurnLine {
  const lines = new Map<string, Set<() => void>>()

  function leaving(key: string): () => void {
    return () => {
      const waiting = lines.get(key)
      const [next] = waiting ?? []
      if (!waiting || !next) return void lines.delete(key)
      waiting.delete(next)
      next()
    }
  }

  return {
    async enter(key, signal) {
      if (signal.aborted) return undefined
      const waiting = lines.get(key)
      if (!waiting) {
        lines.set(key, new Set())
        return leaving(key)
      }
      if (waiting.size >= most)
        throw new HttpError(429, 'conversation_busy', `${most} messages wait in this conversation already; send it again later`, {
          'retry-after': '5',
        })
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>()
      const go = () => resolve(leaving(key))
      waiting.add(go)
      const giveUp = () => {
        if (waiting.delete(go)) resolve(undefined)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
  }
}
