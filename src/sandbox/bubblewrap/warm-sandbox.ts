/** One sandbox is kept started, so that a command finds its namespaces and mounts already made. It is used for a single command, and let go when none comes for long. */

import { discard, isWaiting, type Waiting } from './run-confined.ts'
import type { GuardMounts } from './view.ts'

export type WarmSandbox = {
  /** The kept one if it was started for the same protected names, else a new one. */
  take(guards: GuardMounts): Waiting | Error
  /** Starts the next, if none is kept. */
  prepare(guards: GuardMounts): void
  close(): Promise<void>
}

type Kept = { readonly key: string; readonly waiting: Waiting; readonly idle: ReturnType<typeof setTimeout> }

/** So long one waits for a command that does not come, in milliseconds. */
const usualIdleMs = 60_000

export function createWarmSandbox(start: (guards: GuardMounts) => Waiting | Error, idleMs = usualIdleMs): WarmSandbox {
  const state: { kept: Kept | undefined; closed: boolean } = { kept: undefined, closed: false }
  const give = () => {
    const { kept } = state
    state.kept = undefined
    clearTimeout(kept?.idle)
    return kept?.waiting
  }
  const drop = async () => {
    const waiting = give()
    if (waiting) await discard(waiting)
  }
  return {
    take(guards) {
      const { kept } = state
      if (kept?.key === guards.key && isWaiting(kept.waiting)) return give() ?? start(guards)
      void drop()
      return start(guards)
    },
    prepare(guards) {
      if (state.closed || state.kept !== undefined) return
      const waiting = start(guards)
      if (waiting instanceof Error) return
      const idle = setTimeout(drop, idleMs)
      idle.unref()
      state.kept = { key: guards.key, waiting, idle }
    },
    async close() {
      state.closed = true
      await drop()
    },
  }
}
