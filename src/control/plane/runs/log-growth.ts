/** Lets a reader of a log wait until there is more of it. Growth is announced and no event: logs grow too often to be recorded. */

import type { PlaneContext } from '../context.ts'
import { int, text } from '../row.ts'
import { type Access, ownRun } from './run-row.ts'

/** Wakes those who read the log of this run. */
export function logTopic(run: number): string {
  return `log:${run}`
}

export type Growing = { readonly access: Access; readonly from: number; readonly signal: AbortSignal }

/** Resolves once the log is longer than `from`, the run has ended, or the signal aborts. */
export async function logGrows({ store }: Pick<PlaneContext, 'store'>, { access, from, signal }: Growing): Promise<void> {
  const row = await store.read(() => ownRun(access))
  const heard = announcements(store, logTopic(int(row, 'id')), signal)
  try {
    while (!signal.aborted) {
      const turn = heard.next()
      const now = await store.read(() => ownRun(access))
      if (int(now, 'log_bytes') > from || text(now, 'state') !== 'running') return
      await turn
    }
  } finally {
    heard.end()
  }
}

type Announcements = { readonly next: () => Promise<void>; readonly end: () => void }

/** `next` resolves with the next announcement, or when the signal aborts. */
function announcements(store: PlaneContext['store'], topic: string, signal: AbortSignal): Announcements {
  const state: { turn: PromiseWithResolvers<void> } = { turn: Promise.withResolvers() }
  const tell = () => state.turn.resolve()
  const stop = store.listen(topic, tell)
  signal.addEventListener('abort', tell)
  return {
    next() {
      if (!signal.aborted) state.turn = Promise.withResolvers()
      return state.turn.promise
    },
    end() {
      stop()
      signal.removeEventListener('abort', tell)
    },
  }
}
