/** One end of a FIFO that is always open: no open waits, no peer's death ends it, what nobody has read stays. */

import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { fieldsOf } from '../../kit/wire.ts'

export type Pipe = {
  /** What has arrived, or the first 4,096 bytes of it, a copy; empty when nothing has. */
  read(): Uint8Array
  /** How many bytes went in, from the first one on: all of them or none up to 4,096 (PIPE_BUF), maybe some of more. 0 while it is full. */
  write(bytes: Uint8Array): number
  /** Once, and then nothing more. */
  close(): void
}

/** Bytes a read; the pipe itself holds 65,536. */
const CHUNK = 4096

/**
 * Linux. Open for reading and for writing, so that we are our own peer while there is no other: opening never blocks, the end of the file
 * never comes, and neither does SIGPIPE. With `blocking`, reads and writes wait for ever instead.
 * `path` is one that `createFifos` has looked at: anything else but a FIFO would be deaf. @throws errno errors
 */
export function openPipe(path: string, blocking = false): Pipe {
  const fd = openSync(path, blocking ? 'r+' : constants.O_RDWR | constants.O_NONBLOCK)
  const chunk = new Uint8Array(CHUNK)
  return {
    read: () =>
      chunk.slice(
        0,
        orZero(() => readSync(fd, chunk)),
      ),
    write: (bytes) => orZero(() => writeSync(fd, bytes)),
    close: () => closeSync(fd),
  }
}

/** What an empty or full pipe answers is no error. */
function orZero(act: () => number): number {
  try {
    return act()
  } catch (error) {
    if (fieldsOf(error).code === 'EAGAIN') return 0
    throw error
  }
}
