/** Caches the messages of ended runs between the turns of a long-lived process: their rows change only when another connection writes. */

import type { Message } from '../../runtime/port.ts'
import type { Store } from '../store.ts'

export type OpenRun = { readonly messages: readonly Message[]; readonly tokens: number }

/** The cache keeps the newest runs, up to this many tokens. */
const mostTokens = 1_000_000

export function createToldRuns(store: Store, read: (runId: string) => OpenRun): (runId: string) => OpenRun {
  const kept = new Map<string, OpenRun>()
  const state = { tokens: 0, version: -1 }

  /** Changes with every commit of another connection, in this process or not. */
  function version(): number {
    return store.sql<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? -1
  }

  function keep(runId: string, told: OpenRun): void {
    kept.set(runId, told)
    state.tokens += told.tokens
    for (const [oldest, { tokens }] of kept) {
      if (state.tokens <= mostTokens) return
      kept.delete(oldest)
      state.tokens -= tokens
    }
  }

  return (runId) => {
    const now = version()
    if (now !== state.version) {
      kept.clear()
      Object.assign(state, { tokens: 0, version: now })
    }
    const known = kept.get(runId)
    if (known) return known
    const told = read(runId)
    if (isOver(store, runId)) keep(runId, told)
    return told
  }
}

function isOver(store: Store, runId: string): boolean {
  const over = `SELECT 1 FROM runs WHERE run_id = ? AND ended IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM intents WHERE intents.run_id = runs.run_id)`
  return store.sql(over).get(runId) !== null
}
