/** Bytes out to a file descriptor, whole, whatever the other end does. Only the printer may use it: nothing here is escaped. */

import { writeSync } from 'node:fs'

/**
 * `closed` turns true when nothing can be written any more, and nothing throws. `failure` is the errno name of that, unless the reader
 * simply went away (EPIPE), which is no failure.
 */
export type Descriptor = { put(text: string): void; readonly closed: () => boolean; readonly failure: () => string | undefined }

/**
 * A blocking writer. `process.stdout` would do the same for 8 ms of start-up; a descriptor does it for none.
 * A terminal or pipe set to non-blocking answers EAGAIN while it is full: wait and go on, so that nothing is lost.
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
          const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
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

/** A descriptor that the system does not have: nothing arrives, and that is no success. */
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
