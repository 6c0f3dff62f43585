/** Limits how often each key may do something: a bucket that refills steadily. Nobody is exempt. */

import type { Clock } from '../../runtime/port.ts'

export type RateLimit = {
  /** @returns undefined when it may, else after how many seconds to try again */
  take(key: string): number | undefined
}

export type RateOptions = { readonly perSecond: number; readonly burst: number; readonly now: Clock; readonly keys?: number }

/** @param options.keys how many keys are remembered: the one used longest ago is forgotten first */
export function createRateLimit({ perSecond, burst, now, keys = 10_000 }: RateOptions): RateLimit {
  const buckets = new Map<string, { left: number; at: number }>()
  return {
    take(key) {
      const at = now()
      const bucket = buckets.get(key) ?? { left: burst, at }
      const passed = Math.max(0, at - bucket.at) / 1000
      const left = Math.min(burst, bucket.left + passed * perSecond)
      buckets.delete(key)
      buckets.set(key, { left: left >= 1 ? left - 1 : left, at })
      for (const oldest of buckets.keys()) if (buckets.size > keys) buckets.delete(oldest)
      return left >= 1 ? undefined : Math.max(1, Math.ceil((1 - left) / perSecond))
    },
  }
}
