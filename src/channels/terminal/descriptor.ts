/** Writes text to a file descriptor completely, whatever the other end does. Only the printer may use it, because it escapes nothing. */

import { writeSync } from 'node:fs'
import { errnoOf } from '../../kit/errors.ts'

/**
 * `closed` becomes true when writing is no longer possible; no method throws. `failure` is the errno name of the cause, except EPIPE: the
 * reader going away is not a failure.
 */
export type Descriptor = { put(text: string): void; readonly closed: () => boolean; readonly failure: () => string | undefined }

/**
 * Opens a blocking writer. `process.stdout` would do the same for 8 ms of start-up; a descriptor costs none. A terminal or pipe in
 * non-blocking mode returns EAGAIN while it is full: the writer waits and retries, so that nothing is lost.
 */
export function openDescriptor(fd: number): Descriptor {
  const state: { closed: boolean; failure?: string } = { closed: false }
  return {
    closed: () => state.closed,
    failure: () => state.failure,
    put(text) {
      const bytes = new TextEncoder().encode(text)
      for (let offset = 0; offset < bytes.length && !state.closed; ) {
        try {
          offset += writeSync(fd, bytes, offset)
        } catch (error) {
          const code = errnoOf(error) ?? String(error)
          if (code === 'EAGAIN') Bun.sleepSync(2)
          else {
            state.closed = true
            if (code !== 'EPIPE') state.failure = code
          }
        }
      }
    },
  }
}

/** A descriptor that the system does not have: every write is lost and counts as a failure. */
export function missingDescriptor(): Descriptor {
  const state = { tried: false }
  return {
    put(text) {
      if (text !== '') state.tried = true
    },
    closed: () => state.tried,
    failure: () => (state.tried ? 'EBADF' : undefined),
  }
}
