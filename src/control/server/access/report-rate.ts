/** Limits how often an agent and its runs may report what makes a record each time: errors, questions and session lines. */

import { createRateLimit } from '../../../http/callers/rate-limit.ts'
import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'

/** Far above what an agent has to say, and far below what fills a disk in a night. */
const rate = { perSecond: 20, burst: 1_000 }

export type ReportRate = {
  /** Operators are exempt. @throws PlaneRefusal too_many */
  take(caller: Caller): void
}

export function createReportRate(now: () => number): ReportRate {
  const limit = createRateLimit({ ...rate, now })
  return {
    take(caller) {
      const seconds = caller.kind === 'operator' ? undefined : limit.take(caller.id)
      if (seconds === undefined) return
      throw new PlaneRefusal('too_many', `${caller.id} reports more than ${rate.perSecond} times a second; try again in ${seconds} s`, {
        retry_after_ms: seconds * 1_000,
      })
    },
  }
}
