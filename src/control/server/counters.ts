/** Counts what the server answers, for /metrics. */

import type { Metric } from '../../http/prometheus.ts'

export type Counters = {
  /** An answer with this status was given. */
  answered(status: number): void
  /** Something that stays began; returns what says that it ended. */
  began(what: 'stream' | 'poll'): () => void
  metrics(): readonly Metric[]
}

export function createCounters(): Counters {
  const statuses = new Map<number, number>()
  const open = { stream: 0, poll: 0 }
  return {
    answered: (status) => void statuses.set(status, (statuses.get(status) ?? 0) + 1),
    began(what) {
      open[what] += 1
      const state = { over: false }
      return () => {
        if (!state.over) open[what] -= 1
        state.over = true
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
