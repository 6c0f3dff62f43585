/** Turns journal entries of all runs into numbered events; the same entries always give the same events with the same numbers. */

import { homeRun } from '../../memory/journal/feed/home-notes.ts'
import type { FeedEntry } from '../../memory/journal/feed/journal-feed.ts'
import type { Journal } from '../../memory/journal/journal.ts'
import { noticeOf } from './home-notice.ts'
import type { HostEvent } from './host-event.ts'
import { createRunProjection, type RunProjection } from './run-projection.ts'

export type FeedProjection = (entry: FeedEntry) => readonly HostEvent[]

/** Runs whose process died are forgotten when so many others began after them; what follows of them is read again. */
const mostRuns = 1_000

/** Call it with entries in order. It reads the beginning of a run itself when it has not seen that. */
export function createFeedProjection(journal: Pick<Journal, 'events'>): FeedProjection {
  const runs = new Map<string, RunProjection>()

  function projectionOf({ runId, conversationId, seq }: FeedEntry): RunProjection {
    const known = runs.get(runId)
    if (known) return known
    const projection = createRunProjection({ runId, conversationId: conversationId ?? '' })
    for (const entry of journal.events(runId)) if (entry.seq < seq) projection.take(entry)
    runs.set(runId, projection)
    const [oldest] = runs.keys()
    if (runs.size > mostRuns && oldest !== undefined) runs.delete(oldest)
    return projection
  }

  return (entry) => {
    const { seq, at, runId, conversationId, channel } = entry
    if (runId === homeRun) {
      const notice = noticeOf(entry)
      return notice ? [{ id: idOf(seq, 0), seq, at, ...notice }] : []
    }
    const projection = projectionOf(entry)
    const told = projection.take(entry)
    if (projection.isOver()) runs.delete(runId)
    const whose = { ...(conversationId === null ? {} : { conversationId }), runId, ...(channel === null ? {} : { channel }) }
    return told.map((event, part) => ({ id: idOf(seq, part), seq, at, ...whose, event }))
  }
}

export function idOf(seq: number, part: number): string {
  return `${seq}.${part}`
}
