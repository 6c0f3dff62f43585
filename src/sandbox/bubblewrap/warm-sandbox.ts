/** Keeps sandboxes started for the next commands, so that their namespaces and mounts are ready, and discards idle ones. */

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
  /** Whether a kept sandbox has a key that begins so. */
  keeps(start: string): boolean
  close(): Promise<void>
}

/** How long a sandbox waits for a command, in milliseconds. */
const usualIdleMs = 60_000
/** Commands that only read and commands that write need different ones, and mostly take turns. */
const MOST = 2

export function createWarmSandbox<W extends Keyed, S extends Started>(
  start: (wanted: W) => S | Error,
  idleMs = usualIdleMs,
): WarmSandbox<W, S> {
  type Kept = { readonly started: S; readonly idle: ReturnType<typeof setTimeout> }
  /** In the order in which they were started. */
  const kept = new Map<string, Kept>()
  const state = { closed: false }
  const give = (key: string) => {
    const found = kept.get(key)
    kept.delete(key)
    clearTimeout(found?.idle)
    return found?.started
  }
  const drop = async (key: string) => {
    const started = give(key)
    if (started === undefined) return
    const discarded = discard(started.waiting)
    // Now, because our process may be about to end; and again, because the sandbox may have been starting.
    started.drop?.()
    await discarded
    started.drop?.()
  }
  const isKept = (key: string) => {
    const found = kept.get(key)
    return found !== undefined && isWaiting(found.started.waiting)
  }
  return {
    take(wanted) {
      if (isKept(wanted.key)) return give(wanted.key) ?? start(wanted)
      void drop(wanted.key)
      return start(wanted)
    },
    prepare(wanted) {
      const { key } = wanted
      if (state.closed || isKept(key)) return
      void drop(key)
      for (const old of [...kept.keys()].slice(0, Math.max(0, kept.size - MOST + 1))) void drop(old)
      const started = start(wanted)
      if (started instanceof Error) return
      const idle = setTimeout(() => drop(key), idleMs)
      idle.unref()
      kept.set(key, { started, idle })
    },
    keeps: (start) => [...kept.keys()].some((key) => key.startsWith(start) && isKept(key)),
    async close() {
      state.closed = true
      await Promise.all([...kept.keys()].map(drop))
    },
  }
}
