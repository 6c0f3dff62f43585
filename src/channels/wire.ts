/** Bytes out to a file descriptor, whole, whatever the other end does. */

import { writeSync } from 'node:fs'

/** `closed` turns true when the reader went away (EPIPE): nothing is written after that, and nothing throws. */
export type Sink = { write(text: string): void; readonly closed: () => boolean }

/**
 * A blocking writer. `process.stdout` would do the same for 8 ms of start-up; a descriptor does it for none.
 * A terminal or pipe set to non-blocking answers EAGAIN while it is full: wait and go on, so that nothing is lost.
 */
export function createSink(fd: number): Sink {
  const state = { closed: false }
  return {
    closed: () => state.closed,
    write(text) {
      const bytes = new TextEncoder().encode(text)
      for (let offset = 0; offset < bytes.length && !state.closed; ) {
        try {
          offset += writeSync(fd, bytes, offset)
        } catch (error) {
          if (!isFull(error)) state.closed = true
          else Bun.sleepSync(2)
        }
      }
    },
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
}
