/** One sandbox is kept started, so that a command finds its namespaces and mounts already made. It is used for a single command. */

import { dismiss, isWaiting, type Waiting } from './run.ts'

export type Spare = {
  /** The kept one if it was started for the same protected names, else a new one. */
  take(guards: readonly string[]): Waiting | Error
  /** Starts the next, if none is kept. */
  prepare(guards: readonly string[]): void
  close(): Promise<void>
}

type Making = { start(guards: readonly string[]): Waiting | Error; identity(): string }

type Kept = { readonly key: string; readonly waiting: Waiting }

/** `identity` tells a workspace from another one that was made in its place. */
export function createSpare({ start, identity }: Making): Spare {
  const state: { kept?: Kept; closed: boolean } = { closed: false }
  const key = (guards: readonly string[]) => [identity(), ...guards].join('\0')
  const drop = async () => {
    const { kept } = state
    state.kept = undefined
    if (kept) await dismiss(kept.waiting)
  }
  return {
    take(guards) {
      const { kept } = state
      if (kept?.key === key(guards) && isWaiting(kept.waiting)) {
        state.kept = undefined
        return kept.waiting
      }
      void drop()
      return start(guards)
    },
    prepare(guards) {
      if (state.closed || state.kept !== undefined) return
      const waiting = start(guards)
      if (!(waiting instanceof Error)) state.kept = { key: key(guards), waiting }
    },
    async close() {
      state.closed = true
      await drop()
    },
  }
}
