/** Keeps one sandbox started for the next command, so that its namespaces and mounts are ready, and discards it when idle. */

import { discard, isWaiting, type Waiting } from './run-confined.ts'

/** What a sandbox is started with; two with the same key are interchangeable. */
type Keyed = { readonly key: string }
/** `drop` removes what belongs to a sandbox that gets no command. */
type Started = { readonly waiting: Waiting; readonly drop?: () => void }

export type WarmSandbox<W extends Keyed, S extends Started> = {
  /** Returns the kept sandbox if it was started with the same key, otherwise a new one. */
  take(wanted: W): S | Error
  /** Starts the next sandbox unless one with the same key is kept. */
  prepare(wanted: W): void
  close(): Promise<void>
}

/** How long a sandbox waits for a command, in milliseconds. */
const usualIdleMs = 60_000

export function createWarmSandbox<W extends Keyed, S extends Started>(
  start: (wanted: W) => S | Error,
  idleMs = usualIdleMs,
): WarmSandbox<W, S> {
  type Kept = { readonly key: string; readonly started: S; readonly idle: ReturnType<typeof setTimeout> }
  const state: { kept: Kept | undefined; closed: boolean } = { kept: undefined, closed: false }
  const give = () => {
    const { kept } = state
    state.kept = undefined
    clearTimeout(kept?.idle)
    return kept?.started
  }
  const drop = async () => {
    const started = give()
    if (started === undefined) return
    const discarded = discard(started.waiting)
    // Now, because our process may be about to end; and again, because the sandbox may have been starting.
    started.drop?.()
    await discarded
    started.drop?.()
  }
  return {
    take(wanted) {
      const { kept } = state
      if (kept?.key === wanted.key && isWaiting(kept.started.waiting)) return give() ?? start(wanted)
      void drop()
      return start(wanted)
    },
    prepare(wanted) {
      const { kept } = state
      if (state.closed || (kept?.key === wanted.key && isWaiting(kept.started.waiting))) return
      void drop()
      const started = start(wanted)
      if (started instanceof Error) return
      const idle = setTimeout(drop, idleMs)
      idle.unref()
      state.kept = { key: wanted.key, started, idle }
    },
    async close() {
      state.closed = true
      await drop()
    },
  }
}
