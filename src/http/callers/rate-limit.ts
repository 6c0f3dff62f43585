/** Limits how often each key may do something: a bucket that refills steadily. Nobody is exempt. */

import type { Clock } from '../../runtime/port.ts'

export type RateLimit = {
  /** @returns undefined when it may, else after how many seconds to try again */
  take(key: string): number | undefined
}

export type RateOptions = { readonly perSecond: number; readonly burst: number; readonly now: Clock; readonly keys?: number }

type Bucket = { left: number; at: number }

/** @param options.keys how many keys are remembered at most; those used last, half as many, are never forgotten */
export function createRateLimit({ perSecond, burst, now, keys = 10_000 }: RateOptions): RateLimit {
  const bucketOf = createMemory<Bucket>(keys)
  return {
    take(key) {
      const at = now()
      const bucket = bucketOf(key, () => ({ left: burst, at }))
      const left = Math.min(burst, bucket.left + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.left = left >= 1 ? left - 1 : left
      bucket.at = at
      return left >= 1 ? undefined : Math.max(1, Math.ceil((1 - left) / perSecond))
    },
  }
}

/** In two halves: a full one takes the place of the older one. To look for the key used longest ago would cost more than all else of a request. */
function createMemory<Value>(most: number): (key: string, make: () => Value) => Value {
  const halves = { used: new Map<string, Value>(), older: new Map<string, Value>() }
  return (key, make) => {
    const found = halves.used.get(key)
    if (found !== undefined) return found
    const value = halves.older.get(key) ?? make()
    if (halves.used.size >= most / 2) {
      halves.older = halves.used
      halves.used = new Map()
    }
    halves.used.set(key, value)
    return value
  }
}
