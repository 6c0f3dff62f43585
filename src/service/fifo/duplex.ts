/** One question at a time to a bridge and its answer, on two FIFOs that carry no ids: no answer is ever taken for another question's. */

import { parseEchoed } from '../../kit/echoed.ts'
import type { Pipe } from './open-pipe.ts'

/**
 * `unread`: nobody took the question in time, and it is withdrawn. `timeout`: somebody took it and did not answer in time.
 * `too_long`: the answer was longer than allowed.
 */
export type Answer =
  | { readonly ok: true; readonly answer: string }
  | { readonly ok: false; readonly why: 'unread' | 'timeout' | 'too_long' }

/** A question under way. To be looked at again and again until there is an answer, after so many ms or sooner when something has come. */
export type Asking = {
  look(): Answer | number
  /** Given up: what nobody has read is withdrawn. True when nobody had begun to read it. */
  cancel(): boolean
}

/** A question ends as the wire demands: a line with `\n`, a frame with `\n\n`. One must end before the next begins. */
export type Talk = { ask(text: string, timeoutMs: number): Asking }

/** The longest between two looks. */
const WAIT_MS = 20
/** Reads at once, of a peer that never stops writing. */
const DRAINED = 1024
/** After so long without a byte, an answer that does not look whole is all that comes. */
const QUIET_MS = 1000

/** Ends whatever a reader holds the beginning of, be it a line or a frame. */
const END = '\n\n'

/**
 * `maxBytes` is the most of an answer.
 * The rule. A bridge reads a question, writes its answer, and only then reads on. So whatever stands in the answer FIFO at the moment when
 * the bridge takes the first byte of a question is older than that question, and is thrown away.
 * To know that moment the first byte is offered alone: as long as we can read it back ourselves the bridge has not come to it, whether it
 * is slow, dead, or busy for our predecessor. Once the byte is gone, the answer FIFO is emptied and the rest of the question follows.
 * A question is taken back before we give up, whole or the unread rest of it, so that no later reader starts in its middle; a reader who
 * holds the beginning of one gets its end before the next.
 * It does not cover a bridge that takes the next question before it has answered the last.
 * An answer ends at a blank line; one that begins like JSON only where it is JSON, since a string of it may hold blank lines that an `echo`
 * has expanded. What never gets so far ends when nothing more comes: after a blank line, or when its writer has left.
 */
export function createTalk([request, answer]: readonly [Pipe, Pipe], maxBytes: number): Talk {
  let closing = ''

  function ask(text: string, timeoutMs: number): Asking {
    if (drain(request).length > 0) closing = END
    const until = performance.now() + timeoutMs
    let held = Buffer.alloc(0)
    let heard = 0
    const ending = closing
    const head = ending.length
    const out = Buffer.from(ending + text)
    let sent = 0
    let offering = true
    let wait = 0.05

    /** Writes what there is room for, up to here. */
    function send(to: number): void {
      sent += request.write(out.subarray(sent, to))
    }

    /** Takes back what nobody has read; true when nobody has begun to read it. */
    function recall(): boolean {
      sent -= drain(request).length
      const untouched = sent <= head
      closing = untouched ? ending.slice(sent) : sent < out.length ? END : ''
      return untouched
    }

    function look(): Answer | number {
      if (offering) {
        offering = recall()
        drain(answer)
        // Not together: who reads all there is would have taken the byte before it has answered what the end completes.
        if (offering) send(sent < head ? head : head + 1)
        else wait = 0.05
      }
      if (!offering) {
        send(out.length)
        const bytes = drain(answer)
        // What comes before the question is out is no answer to it.
        held = Buffer.concat(sent < out.length ? [] : [held, bytes])
        if (bytes.length > 0) {
          wait = 0.05
          heard = performance.now()
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

    /** Nothing more comes. */
    function isLeft(): boolean {
      const text = held.toString()
      return performance.now() - heard > QUIET_MS && text.trim() !== '' && (answer.abandoned() || BLANK_LINE.test(text))
    }

    /** What came at once was written in answer to one question, blank lines and all. */
    function settle(): Answer {
      drain(request)
      closing = ''
      return { ok: true, answer: held.toString().trimEnd() }
    }

    return { look, cancel: recall }
  }

  return { ask }
}

const BLANK_LINE = /\n\r?\n/

function isWhole(answer: Buffer): boolean {
  const text = answer.toString()
  return /\n\r?\n$/.test(text.slice(-3)) && (!/^\s*[[{]\s*["[{]/.test(text) || parseEchoed(text) !== undefined)
}

/** All that is there. */
function drain(pipe: Pipe): Uint8Array {
  const chunks: Uint8Array[] = []
  for (let bytes = pipe.read(); bytes.length > 0; bytes = pipe.read()) {
    chunks.push(bytes)
    if (chunks.length > DRAINED) break
  }
  return Buffer.concat(chunks)
}
