/** Whether somebody listens at a FIFO. */

import { closeSync, constants, openSync } from 'node:fs'

/** Somebody has it open for reading, or waits for a writer. What is no FIFO, or not there, nobody reads. */
export function isRead(path: string): boolean {
  const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW))
    return true
  } catch {
    return false
  }
}
