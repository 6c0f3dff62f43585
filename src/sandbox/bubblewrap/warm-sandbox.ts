/** One sandbox is kept started, so that a command finds its namespaces and mounts already made. It is used for a single command. */

import { dismiss, isWaiting, type Waiting } from './run-confined.ts'
import type { GuardMounts } from './view.ts'

export type Spare = {
  /** The kept one if it was started for the same protected names, else a new one. */
  take(guards: GuardMounts): Waiting | Error
  /** Starts the next, if none is kept. */
  prepare(guards: GuardMounts): void
  close(): Promise<void>
}

type Kept = { readonly key: string; readonly waiting: Waiting }

export function createSpare(start: (guards: GuardMounts) => Waiting | Error): Spare {
  const state: { kept?: Kept; closed: boolean } = { closed: false }
  const drop = async () => {
    const { kept } = state
    state.kept = undefined
    if (kept) await dismiss(kept.waiting)
  }
  return {
    take(guards) {
      const { kept } = state
      if (kept?.key === guards.key && isWaiting(kept.waiting)) {
        state.kept = undefined
        return kept.waiting
      }
      void drop()
      return start(guards)
    },
    prepare(guards) {
      if (state.closed || state.kept !== undefined) return
      const waiting = start(guards)
      if (!(waiting instanceof Error)) state.kept = { key: guards.key, waiting }
    },
    async close() {
      state.closed = true
      await drop()
    },
  }
}
