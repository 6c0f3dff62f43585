/** Reads lines and frames as they arrive in a FIFO. */

import { type FSWatcher, lstatSync, watch } from 'node:fs'
import { atEnd, attempt } from '../../kit/errors.ts'
import { createFifoLines, createSplitter, type FifoLines, type Line } from '../../kit/lines.ts'
import { openPipe, READER } from './open-pipe.ts'

export type ReadOptions = {
  /** Ends the reading and closes the FIFO; if iteration never starts, only this signal closes it. */
  readonly signal: AbortSignal
  /** A longer line or frame is reported as `ok: false` with its beginning. */
  readonly maxBytes?: number
}

/** The limit for a line to the agent: enough for a long article, not for a book. */
const LINE_BYTES = 1_048_576
/** The limit for a frame: enough for a whole conversation with its tools. */
export const FRAME_BYTES = 16_777_216

/**
 * Yields each line without its newline. The FIFO is open when this returns, whether or not a writer exists. It continues while writers come
 * and go, until the signal aborts or the caller breaks out; if the FIFO itself is removed, the last line reports that.
 * A partial line is reported as `ok: false` when no process has the FIFO open for writing any more. While others have, it is reported when,
 * after a pause, bytes arrive that are a message by themselves, a channel and a tab: no later part of a message begins so, because the
 * protocol escapes the tabs of its text. Only text that two writers write within that pause can still merge into one line.
 * @throws errno errors; `createFifos` must have checked `path`.
 */
export function openLines(path: string, { signal, maxBytes = LINE_BYTES }: ReadOptions): AsyncGenerator<Line, void, undefined> {
  return pieces({ path, signal, splitter: createFifoLines(maxBytes) })
}

/** Yields texts that end at a blank line, from any number of writers; see `createSplitter`. */
export function openFrames(path: string, { signal, maxBytes = FRAME_BYTES }: ReadOptions): AsyncGenerator<Line, void, undefined> {
  return pieces({ path, signal, splitter: { ...createSplitter(maxBytes), end: () => [] } })
}

/** How long a writer may pause within a message, and the longest wait between two checks whether it has left, in ms. */
const PAUSE_MS = 250
const LEFT_MS = 20
const NEWLINE = 10

type FifoSource = { readonly path: string; readonly signal: AbortSignal; readonly splitter: FifoLines }

function pieces({ path, signal, splitter }: FifoSource): AsyncGenerator<Line, void, undefined> {
  const pipe = openPipe(path, READER)
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
    let [lastByteAt, isTorn] = [0, false]
    using _end = atEnd(close)
    for (let wait = 1; open; wait *= 2) {
      const longest = isTorn ? LEFT_MS : LONGEST_WAIT_MS
      const bytes = pipe.read()
      if (bytes.length > 0) {
        if (performance.now() - lastByteAt > PAUSE_MS && isMessage(bytes)) yield* splitter.end()
        lastByteAt = performance.now()
        isTorn = bytes.at(-1) !== NEWLINE
        yield* splitter.push(bytes)
        wait = 0.5
      } else if (isTorn && pipe.abandoned()) {
        isTorn = false
        yield* splitter.end()
      } else if (wait > longest && inode(path) !== opened) {
        return yield { ok: false, text: '', error: `${path} was removed or replaced; start again to open the new one` }
      } else await waiter.wait(Math.min(wait, longest), signal)
    }
  }
  return read()
}

/** Tells whether the bytes begin with a channel and a tab. */
function isMessage(bytes: Uint8Array): boolean {
  return /^[^\t\n]+\t/.test(Buffer.from(bytes).toString('latin1'))
}

function inode(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino
}

/** The longest wait between two reads, in ms: a write notification can get lost, and some file systems send none. */
const LONGEST_WAIT_MS = 500

/**
 * Uses the kernel's write notifications (inotify). It may merge notifications within a few ms, so callers should read often at first, at
 * doubling intervals. Without notifications (no watches left) only the timer resolves.
 */
export function createWaiter(path: string) {
  let written = false
  let wake = (): void => {}
  const watcher = watched(path, () => {
    written = true
    wake()
  })

  /** Resolves after at most `ms`; sooner when bytes were written or the signal aborts. */
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
  return attempt(() => watch(path, { persistent: false }, written).on('error', () => {}))
}
