/** Waiting for something to arrive in a FIFO, without a thread that blocks and without a loop that burns. */

import { type FSWatcher, watch } from 'node:fs'

export type Waiter = {
  /** Resolves after at most `ms`, sooner when something was written or the signal aborts. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  close(): void
}

/** The longest anybody should wait between two looks: the notice of a write can get lost, and is missing on some file systems. */
export const LONGEST_WAIT_MS = 500

/**
 * The kernel tells of writes (inotify). Notices that follow each other within a few ms may be told as one, so look often at first, at
 * doubling distances. Without notices (no watches left) only the clock wakes.
 */
export function createWaiter(path: string): Waiter {
  let written = false
  let wake = (): void => {}
  const watcher = watched(path, () => {
    written = true
    wake()
  })

  async function wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (written || signal?.aborted) {
      written = false
      return
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, ms)
      function done(): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        wake = () => {}
        resolve()
      }
      wake = done
      signal?.addEventListener('abort', done, { once: true })
    })
    written = false
  }

  return { wait, close: () => watcher?.close() }
}

function watched(path: string, written: () => void): FSWatcher | undefined {
  try {
    return watch(path, { persistent: false }, written).on('error', () => {})
  } catch {
    return undefined
  }
}
