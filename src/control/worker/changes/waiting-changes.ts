/** Remembers which kept change sets the control plane believes to wait, and finds those that a person has applied or dropped since. */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { Host } from '../../../host/api.ts'
import type { ChangesDecision } from '../worker-options.ts'

const waitingList = z.array(z.object({ run_id: z.string(), id: z.string() }))
type Waiting = z.infer<typeof waitingList>
const most = 1_000

export type WaitingChanges = {
  add(kept: { readonly runId: string; readonly id: string }): void
  /** Tells each decision until `tell` resolves, and then not again. @throws what `tell` throws */
  tellDecided(tell: (decision: ChangesDecision) => Promise<unknown>): Promise<void>
}

/** `path`: a JSON file of the worker. */
export function openWaitingChanges(path: string, host: Pick<Host, 'changes'>): WaitingChanges {
  return {
    add: ({ runId, id }) => write(path, [...read(path), { run_id: runId, id }].slice(-most)),
    async tellDecided(tell) {
      const waiting = read(path)
      if (waiting.length === 0) return
      const { store } = await host.changes()
      const states = new Map(store.list().map(({ id, state }) => [id, state]))
      for (const { run_id: runId, id } of waiting) {
        const state = states.get(id)
        if (state === 'pending' || state === 'unfinished') continue
        await tell({ runId, changes: state === undefined ? 'dropped' : 'applied' })
        write(
          path,
          read(path).filter((each) => each.id !== id),
        )
      }
    },
  }
}

/** Takes over the list of an older version. */
export function moveWaiting(from: string, to: string): void {
  const older = read(from)
  if (older.length > 0) write(to, [...older, ...read(to)].slice(-most))
  rmSync(from, { force: true })
}

function read(path: string): Waiting {
  try {
    return waitingList.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return []
  }
}

function write(path: string, waiting: Waiting): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(`${path}.new`, JSON.stringify(waiting), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
