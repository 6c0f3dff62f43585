/** Tells whether a process reads a FIFO. */

import { closeSync, constants, openSync } from 'node:fs'

/** True if a process has the FIFO open for reading, or waits for a writer. False if nobody reads it, or if it does not exist. */
export function isRead(path: string): boolean {
  const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW))
    return true
  } catch {
    return false
  }
}
