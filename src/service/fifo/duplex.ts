/** Sends a bridge one question at a time and reads its answer, on two FIFOs without ids, never confusing answers. */

import { parseEchoed } from '../../kit/wire.ts'
import type { Pipe } from './open-pipe.ts'

/**
 * `unread`: no bridge read the question in time, and it is withdrawn. `timeout`: a bridge read it and did not answer in time. `too_long`: the
 * answer was longer than allowed.
 */
export type BridgeAnswer =
  | { readonly ok: true; readonly answer: string }
  | { readonly ok: false; readonly why: 'unread' | 'timeout' | 'too_long' }

/**
 * A question in progress. The caller calls `look` until it returns an answer; a number is the longest wait in ms until the next call, which
 * may come sooner when bytes have arrived.
 */
export type PendingQuestion = {
  poll(): BridgeAnswer | number
  /** Gives up and withdraws the unread bytes. @returns true when no bridge had begun to read it */
  cancel(): boolean
}

/** A question ends as the protocol demands: a line with `\n`, a frame with `\n\n`. One question must end before the next begins. */
export type Duplex = { ask(text: string, timeoutMs: number): PendingQuestion }

/** The longest wait between two calls of `look`, in ms. */
const WAIT_MS = 20
/** The most reads in one call, in case a peer never stops writing. */
const DRAINED = 1024
/** After this many ms without a byte, an answer that looks incomplete counts as complete. */
const QUIET_MS = 1000

/** Ends a partial line or frame that a reader holds. */
const END = '\n\n'

/**
 * `maxBytes` is the limit for an answer.
 * The rule: a bridge reads a question, writes its answer, and only then reads on. So everything in the answer FIFO at the moment when the
 * bridge takes the first byte of a question is older than that question, and is discarded.
 * To detect that moment, `look` offers the first byte alone: as long as we can read it back ourselves the bridge has not taken it, whether
 * it is slow, dead, or busy with a question of a previous agent. Once the byte is gone, we empty the answer FIFO and send the rest of the
 * question.
 * Before it gives up, it withdraws the question, whole or the unread rest, so that no later reader starts in its middle; a reader that
 * holds the beginning of a question gets the end of it before the next question.
 * The rule does not cover a bridge that takes the next question before it has answered the last.
 * An answer ends at a blank line. An answer that begins like JSON ends only where it is valid JSON, since a string in it may contain blank
 * lines that an `echo` has expanded. An answer that never gets that far ends when no more bytes come: after a blank line, or when its
 * writer has left.
 */
export function createDuplex([request, answer]: readonly [Pipe, Pipe], maxBytes: number): Duplex {
  let closing = ''

  function ask(text: string, timeoutMs: number): PendingQuestion {
    if (drain(request).length > 0) closing = END
    const until = performance.now() + timeoutMs
    let held = Buffer.alloc(0)
    let lastByteAt = 0
    const ending = closing
    const head = ending.length
    const out = Buffer.from(ending + text)
    let sent = 0
    let offering = true
    let wait = 0.05

    /** Writes the bytes up to `to`, as far as there is room. */
    function send(to: number): void {
      sent += request.write(out.subarray(sent, to))
    }

    /** Withdraws the unread bytes. @returns true when no bridge has begun to read it */
    function recall(): boolean {
      sent -= drain(request).length
      const untouched = sent <= head
      closing = untouched ? ending.slice(sent) : sent < out.length ? END : ''
      return untouched
    }

    function poll(): BridgeAnswer | number {
      if (offering) {
        offering = recall()
        drain(answer)
        // Not in one write: a reader that takes all available bytes would take the first byte before it answers the question that this end
        // completes.
        if (offering) send(sent < head ? head : head + 1)
        else wait = 0.05
      }
      if (!offering) {
        send(out.length)
        const bytes = drain(answer)
        // Bytes that arrive before the question is sent completely are not an answer to it.
        held = Buffer.concat(sent < out.length ? [] : [held, bytes])
        if (bytes.length > 0) {
          wait = 0.05
          lastByteAt = performance.now()
        }
        if (held.length > maxBytes) {
          recall()
          return { ok: false, why: 'too_long' }
        }
        if (bytes.length > 0 ? isWhole(held) : isLeft()) return settle()
      }
      const left = until - performance.now()
      wait = Math.min(wait * 2, WAIT_MS)
      if (left > 0) return Math.min(wait, left)
      return { ok: false, why: recall() ? 'unread' : 'timeout' }
    }

    /** Tells whether no more bytes will come. */
    function isLeft(): boolean {
      const text = held.toString()
      return performance.now() - lastByteAt > QUIET_MS && text.trim() !== '' && (answer.abandoned() || BLANK_LINE.test(text))
    }

    /** Bytes that arrived together answer one question, including their blank lines. */
    function settle(): BridgeAnswer {
      drain(request)
      closing = ''
      return { ok: true, answer: held.toString().trimEnd() }
    }

    return { poll, cancel: recall }
  }

  return { ask }
}

const BLANK_LINE = /\n\r?\n/

function isWhole(answer: Buffer): boolean {
  const text = answer.toString()
  return /\n\r?\n$/.test(text.slice(-3)) && (!/^\s*[[{]\s*["[{]/.test(text) || parseEchoed(text) !== undefined)
}

/** Reads everything that is available. */
function drain(pipe: Pipe): Uint8Array {
  const chunks: Uint8Array[] = []
  for (let bytes = pipe.read(); bytes.length > 0; bytes = pipe.read()) {
    chunks.push(bytes)
    if (chunks.length > DRAINED) break
  }
  return Buffer.concat(chunks)
}
