/** Remembers which change sets still wait according to the control plane, and finds those that a person has applied or dropped since. */

import { rmSync } from 'node:fs'
import { z } from 'zod'
import type { Host } from '../../../host/api.ts'
import { replaceFile } from '../../../kit/files.ts'
import { jsonAt } from '../child/child-processes.ts'
import type { ChangesDecision } from '../worker-options.ts'

const waitingList = z.array(z.object({ run_id: z.string(), id: z.string() }))
type UndecidedChanges = z.infer<typeof waitingList>
const most = 1_000

export type WaitingChanges = {
  add(kept: { readonly runId: string; readonly id: string }): void
  /** Reports each decision until `tell` resolves, and then never again. @throws what `tell` throws */
  reportDecided(report: (decision: ChangesDecision) => Promise<unknown>): Promise<void>
}

/** Keeps the list in the JSON file `path` of the worker. */
export function openWaitingChanges(path: string, host: Pick<Host, 'changes'>): WaitingChanges {
  return {
    add: ({ runId, id }) => write(path, [...read(path), { run_id: runId, id }]),
    async reportDecided(report) {
      const waiting = read(path)
      if (waiting.length === 0) return
      const { store } = await host.changes()
      const states = new Map(store.list().map(({ id, state }) => [id, state]))
      for (const { run_id: runId, id } of waiting) {
        const state = states.get(id)
        if (state === 'pending' || state === 'unfinished') continue
        await report({ runId, changes: state === undefined ? 'dropped' : 'applied' })
        write(
          path,
          read(path).filter((each) => each.id !== id),
        )
      }
    },
  }
}

/** Moves the list of an older version. */
export function moveWaiting(from: string, to: string): void {
  const older = read(from)
  if (older.length > 0) write(to, [...older, ...read(to)])
  rmSync(from, { force: true })
}

function read(path: string): UndecidedChanges {
  return waitingList.safeParse(jsonAt(path)).data ?? []
}

function write(path: string, waiting: UndecidedChanges): void {
  replaceFile(path, JSON.stringify(waiting.slice(-most)))
}
