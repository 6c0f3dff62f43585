/** Follows the journal for metrics and traces, as long as a server of this home runs. */

import type { JournalFeed } from '../../../memory/journal/feed/journal-feed.ts'
import type { EventHub } from '../host-event.ts'
import type { Exporter } from './exporter.ts'
import { createRunMetrics, type RunMetrics } from './run-metrics.ts'
import { createSpanReader } from './run-spans.ts'

export type FollowOptions = {
  readonly events: EventHub
  readonly feed: JournalFeed
  readonly exporter?: Exporter
  readonly signal: AbortSignal
  readonly failed: (error: unknown) => void
}

const pageSize = 256

/** Reads what the runs do from now on; runs of other processes on this home count too. */
export function followRuns({ events, feed, exporter, signal, failed }: FollowOptions): Pick<RunMetrics, 'metrics'> {
  const metrics = createRunMetrics()
  const spansOf = createSpanReader()
  const state = { after: events.latest() }

  function read(): void {
    for (;;) {
      const entries = feed.page({ after: state.after, through: Number.MAX_SAFE_INTEGER, limit: pageSize })
      for (const entry of entries) {
        state.after = entry.seq
        for (const span of spansOf(entry)) {
          metrics.take(span)
          exporter?.add(span)
        }
      }
      if (entries.length < pageSize) return
    }
  }

  async function follow(): Promise<void> {
    while (!signal.aborted)
      for await (const { seq, event } of events.subscribe({ after: state.after }, signal)) {
        if (seq !== undefined && seq > state.after) read()
        if (event.type === 'subscription_ended' && event.reason !== 'slow') return
      }
  }

  follow().catch(failed)
  return metrics
}
