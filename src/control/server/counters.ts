/** Counts what the server answers, for /metrics, and limits how many requests of an agent may wait and how often it may report. */

import { createRateLimit } from '../../http/callers.ts'
import type { Metric } from '../../http/prometheus.ts'
import type { Caller } from '../contract/caller.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'

export type Counters = {
  answered(status: number): void
  /** Counts a request that stays open; returns a function that ends it. @throws PlaneRefusal too_many, never for an operator */
  began(what: 'stream' | 'poll', caller: Caller): () => void
  metrics(): readonly Metric[]
}

/** Limits the open requests of one agent with its runs, and of all agents: the server has room for 8,192 requests, and operators need some. */
const most = { ofAgent: 1_024, ofAll: 7_168 }

export function createCounters(): Counters {
  const statuses = new Map<number, number>()
  const open = { stream: 0, poll: 0 }
  const agents = createShares()
  return {
    answered: (status) => void statuses.set(status, (statuses.get(status) ?? 0) + 1),
    began(what, caller) {
      const leave = caller.kind === 'operator' ? () => {} : agents.take(caller.id)
      open[what] += 1
      const state = { over: false }
      return () => {
        if (state.over) return
        state.over = true
        open[what] -= 1
        leave()
      }
    },
    metrics: () => [
      {
        name: 'braidclaw_control_http_responses_total',
        type: 'counter',
        help: 'Answers by status since the daemon began.',
        samples: [...statuses].sort(([a], [b]) => a - b).map(([status, value]) => ({ labels: { status: String(status) }, value })),
      },
      gauge('braidclaw_control_event_streams', 'Clients that follow events now.', open.stream),
      gauge('braidclaw_control_waiting_claims', 'Claims that wait for a task now.', open.poll),
    ],
  }
}

export function gauge(name: string, help: string, value: number): Metric {
  return { name, type: 'gauge', help, samples: [{ value }] }
}

/** Counts the open requests of each agent. `take` returns a function that ends one. @throws PlaneRefusal too_many */
function createShares() {
  const counts = new Map<string, number>()
  const all = { count: 0 }
  return {
    take(agent: string): () => void {
      const own = counts.get(agent) ?? 0
      if (own >= most.ofAgent || all.count >= most.ofAll) {
        const [count, whose] = own >= most.ofAgent ? [own, agent] : [all.count, 'all agents']
        throw new PlaneRefusal('too_many', `${count} requests of ${whose} wait already; ask again later, or with fewer workers`, {
          retry_after_ms: 1_000,
        })
      }
      counts.set(agent, own + 1)
      all.count += 1
      return () => {
        const left = (counts.get(agent) ?? 1) - 1
        if (left > 0) counts.set(agent, left)
        else counts.delete(agent)
        all.count -= 1
      }
    },
  }
}

/** Allows far more than an agent reports, and far less than would fill a disk in a night. */
const rate = { perSecond: 20, burst: 1_000 }

/** Returns a function that counts a report; operators are exempt. @throws PlaneRefusal too_many */
export function createReportRate(now: () => number): (caller: Caller) => void {
  const limit = createRateLimit({ ...rate, now })
  return (caller) => {
    const seconds = caller.kind === 'operator' ? undefined : limit.take(caller.id)
    if (seconds === undefined) return
    const why = `${caller.id} reports more than ${rate.perSecond} times a second; try again in ${seconds} s`
    throw new PlaneRefusal('too_many', why, { retry_after_ms: seconds * 1_000 })
  }
}
