/** Lines and frames as they arrive in a FIFO. */

import { lstatSync } from 'node:fs'
import { createSplitter, type Splitter } from '../../kit/frames.ts'
import type { Line } from '../../kit/lines.ts'
import { openPipe } from './pipe.ts'
import { createWaiter, LONGEST_WAIT_MS } from './wait.ts'

export type ReadOptions = {
  /** Ends the reading and closes the FIFO; a reading that is never begun is closed only so. */
  readonly signal: AbortSignal
  /** A longer line or frame is told as `ok: false` with its beginning. */
  readonly maxBytes?: number
}

/** A line to the agent: a long article, not a book. */
const LINE_BYTES = 1_048_576
/** A whole conversation with its tools. */
export const FRAME_BYTES = 16_777_216

/**
 * Each line without its newline, from now on: the FIFO is open when this returns, whether anybody writes yet or not. It goes on whoever
 * comes and goes, until the signal aborts or the caller breaks out; when the FIFO itself is removed the last one says so.
 * What a writer left unfinished goes together with what the next one writes: the wire cannot tell them apart.
 * @throws errno errors; `path` is one that `createFifos` has looked at.
 */
export function openLines(path: string, { signal, maxBytes = LINE_BYTES }: ReadOptions): AsyncGenerator<Line, void, undefined> {
  return pieces({ path, signal, splitter: createSplitter(maxBytes) })
}

/** The same for text that ends at a blank line; see `createSplitter`. */
export function openFrames(path: string, { signal, maxBytes = FRAME_BYTES }: ReadOptions): AsyncGenerator<Line, void, undefined> {
  return pieces({ path, signal, splitter: createSplitter(maxBytes, true) })
}

type Source = { readonly path: string; readonly signal: AbortSignal; readonly splitter: Splitter }

function pieces({ path, signal, splitter }: Source): AsyncGenerator<Line, void, undefined> {
  const pipe = openPipe(path)
  const opened = inode(path)
  const waiter = createWaiter(path)
  let open = true
  function close(): void {
    if (open) pipe.close()
    open = false
    waiter.close()
    signal.removeEventListener('abort', close)
  }
  signal.addEventListener('abort', close)
  if (signal.aborted) close()

  async function* read(): AsyncGenerator<Line, void, undefined> {
    try {
      for (let wait = 1; open; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
        const bytes = pipe.read()
        if (bytes.length > 0) {
          yield* splitter.push(bytes)
          wait = 0.5
        } else if (wait === LONGEST_WAIT_MS && inode(path) !== opened) {
          return yield { ok: false, text: '', error: `${path} was removed or replaced; start again to open the new one` }
        } else await waiter.wait(wait, signal)
      }
    } finally {
      close()
    }
  }
  return read()
}

function inode(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino
}
