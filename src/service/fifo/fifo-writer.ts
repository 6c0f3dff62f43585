/** Writes into a FIFO that may have no reader for a while. */

import { openPipe } from './open-pipe.ts'

/**
 * `begun: false`: no byte was written, and none will be. `begun: true`: the message was too long for one write; its beginning is out and
 * the rest follows, before anything else, as soon as a process reads.
 */
export type WriteResult = { readonly ok: true } | { readonly ok: false; readonly begun: boolean; readonly message: string }

export type Writer = {
  /** Writes one whole message with its end. Resolves when all of it is in the pipe, which holds 64 KiB for a reader that opens it later. */
  write(text: string, limits: WriteLimits): Promise<WriteResult>
  /** Gives up waiting messages. */
  close(): void
}

/** `timeoutMs` restarts whenever a process has read from the pipe: a slow reader is still present. */
export type WriteLimits = { readonly timeoutMs: number; readonly signal?: AbortSignal }

/** The longest wait between two attempts to write into a full pipe, in ms. */
const LONGEST_WAIT_MS = 250

/**
 * Writes messages whole and in order, also after a message that timed out in its middle. Up to 4,096 bytes a message never mixes with those
 * of another process that writes into the same FIFO; longer messages can, so only one process should write those.
 * @throws errno errors; `createFifos` must have checked `path`
 */
export function openWriter(path: string): Writer {
  const pipe = openPipe(path)
  const queue: QueuedMessage[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let wait = 1
  let closed = false
  /** When the pipe last accepted bytes. */
  let moved = Number.NEGATIVE_INFINITY

  function pump(): void {
    timer = undefined
    for (let head = queue[0]; head !== undefined; head = queue[0]) {
      const taken = pipe.write(head.bytes.subarray(head.sent))
      if (taken > 0) moved = performance.now()
      head.sent += taken
      if (head.sent < head.bytes.length) break
      queue.shift()
      head.settle({ ok: true })
      wait = 1
    }
    if (queue.length === 0) return
    timer = setTimeout(pump, wait)
    wait = Math.min(wait * 2, LONGEST_WAIT_MS)
  }

  function giveUp(one: QueuedMessage, why: string): void {
    const begun = one.sent > 0
    if (!begun) queue.splice(queue.indexOf(one), 1)
    const rest = begun ? '; its beginning is out, the rest follows when somebody reads' : ''
    one.settle({ ok: false, begun, message: `${path}: ${why}${rest}` })
  }

  function write(text: string, { timeoutMs, signal }: WriteLimits): Promise<WriteResult> {
    return new Promise((resolve) => {
      const asked = performance.now()
      let late = setTimeout(look, timeoutMs)
      function look(): void {
        const left = Math.max(asked, moved) + timeoutMs - performance.now()
        if (left > 0) late = setTimeout(look, left)
        else giveUp(one, `nobody made room for the message in ${timeoutMs} ms`)
      }
      const aborted = (): void => giveUp(one, 'the message was cancelled')
      const one: QueuedMessage = {
        bytes: new TextEncoder().encode(text),
        sent: 0,
        settle(result) {
          clearTimeout(late)
          signal?.removeEventListener('abort', aborted)
          resolve(result)
        },
      }
      queue.push(one)
      if (closed) giveUp(one, 'closed')
      else if (signal?.aborted) aborted()
      else signal?.addEventListener('abort', aborted, { once: true })
      if (timer === undefined && !closed) pump()
    })
  }

  function close(): void {
    if (closed) return
    closed = true
    clearTimeout(timer)
    pipe.close()
    for (const one of [...queue]) giveUp(one, 'closed')
  }

  return { write, close }
}

/** Settling twice has no effect: a partly written message may time out and still be written. */
type QueuedMessage = { readonly bytes: Uint8Array; sent: number; readonly settle: (result: WriteResult) => void }
