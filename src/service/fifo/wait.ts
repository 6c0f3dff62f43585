/** Waits for bytes in a FIFO without a blocked thread and without a busy loop. */

import { type FSWatcher, watch } from 'node:fs'

export type Waiter = {
  /** Resolves after at most `ms`; sooner when bytes were written or the signal aborts. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  close(): void
}

/** The longest wait between two reads, in ms: a write notification can get lost, and some file systems send none. */
export const LONGEST_WAIT_MS = 500

/**
 * Uses the kernel's write notifications (inotify). It may merge notifications within a few ms, so callers should read often at first, at
 * doubling intervals. Without notifications (no watches left) only the timer resolves.
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
