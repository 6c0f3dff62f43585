/** Opens one end of a FIFO so that opening never waits, the death of a peer never ends it, and unread bytes stay. */

import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { fieldsOf } from '../../kit/wire.ts'

export type Pipe = {
  /** Returns a copy of what has arrived, at most 4,096 bytes; empty when nothing has. */
  read(): Uint8Array
  /**
   * Call it after a read that found nothing. @returns true if no process has it open for writing; we do ourselves, unless opened as
   * `READER`
   */
  abandoned(): boolean
  /**
   * @returns how many bytes it wrote, from the first one on: all or none up to 4,096 (PIPE_BUF), possibly a part of more; 0 while the pipe
   * is full
   */
  write(bytes: Uint8Array): number
  /** Closes it. Call it once, and no other method after it. */
  close(): void
}

/** Bytes per read; the pipe itself holds 65,536. */
const CHUNK = 4096

/** Read-only, so that the reader can detect that the last writer has left. */
export const READER = constants.O_NONBLOCK
/**
 * For reading and writing, so that this process is its own peer while there is no other: neither the end of the file nor SIGPIPE occurs.
 */
const BOTH = READER | constants.O_RDWR

/**
 * On Linux, opening never blocks. With flags without O_NONBLOCK, reads and writes wait: 'r' until a writer writes or the last one leaves,
 * 'r+' forever. `createFifos` must have checked that `path` is a FIFO: any other file would never deliver a message. @throws errno errors
 */
export function openPipe(path: string, flags: number | string = BOTH): Pipe {
  const fd = openSync(path, flags)
  const chunk = new Uint8Array(CHUNK)
  let waiting = false

  /** An empty or full pipe (EAGAIN) is not an error. */
  function attempt(act: () => number): number {
    try {
      waiting = false
      return act()
    } catch (error) {
      if (fieldsOf(error).code !== 'EAGAIN') throw error
      waiting = true
      return 0
    }
  }

  return {
    read: () =>
      chunk.slice(
        0,
        attempt(() => readSync(fd, chunk)),
      ),
    abandoned: () => !waiting,
    write: (bytes) => attempt(() => writeSync(fd, bytes)),
    close: () => closeSync(fd),
  }
}
