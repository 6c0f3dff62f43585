/** One end of a FIFO that is always open: no open waits, no peer's death ends it, what nobody has read stays. */

import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { fieldsOf } from '../../kit/wire.ts'

export type Pipe = {
  /** What has arrived, or the first 4,096 bytes of it, a copy; empty when nothing has. */
  read(): Uint8Array
  /** After a read that found nothing: nobody has it open for writing. We ourselves have, unless it was opened as `READER`. */
  abandoned(): boolean
  /** How many bytes went in, from the first one on: all of them or none up to 4,096 (PIPE_BUF), maybe some of more. 0 while it is full. */
  write(bytes: Uint8Array): number
  /** Once, and then nothing more. */
  close(): void
}

/** Bytes a read; the pipe itself holds 65,536. */
const CHUNK = 4096

/** To read only: so it can be known that the last writer has left. */
export const READER = constants.O_NONBLOCK
/** For reading and for writing, so that we are our own peer while there is no other: neither the end of the file nor SIGPIPE ever comes. */
const BOTH = READER | constants.O_RDWR

/**
 * Linux: opening never blocks. With flags of the caller's own without O_NONBLOCK, reads and writes wait: 'r' for a writer or the last one's
 * leaving, 'r+' for ever. `path` is one that `createFifos` has looked at: anything else but a FIFO would be deaf. @throws errno errors
 */
export function openPipe(path: string, flags: number | string = BOTH): Pipe {
  const fd = openSync(path, flags)
  const chunk = new Uint8Array(CHUNK)
  let waiting = false

  /** What an empty or full pipe answers is no error. */
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
