/** Keeps one sandbox started for the next command, so that its namespaces and mounts are ready, and discards it when idle. */

import { discard, isWaiting, type Waiting } from './run-confined.ts'
import type { GuardMounts } from './view.ts'

export type WarmSandbox = {
  /** Returns the kept sandbox if it was started for the same protected names, otherwise a new one. */
  take(guards: GuardMounts): Waiting | Error
  /** Starts the next sandbox unless one is kept. */
  prepare(guards: GuardMounts): void
  close(): Promise<void>
}

type Kept = { readonly key: string; readonly waiting: Waiting; readonly idle: ReturnType<typeof setTimeout> }

/** How long a sandbox waits for a command, in milliseconds. */
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
