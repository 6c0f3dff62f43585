/** One question at a time to a bridge and its answer, on two FIFOs that carry no ids: no answer is ever taken for another question's. */

import { createSplitter } from '../../kit/frames.ts'
import type { Line } from '../../kit/lines.ts'
import type { Pipe } from './pipe.ts'

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
  /** Given up: what nobody has read is withdrawn. */
  cancel(): void
}

/** A question ends as the wire demands: a line with `\n`, a frame with `\n\n`. One must end before the next begins. */
export type Talk = { ask(text: string, timeoutMs: number): Asking }

export type TalkOptions = {
  readonly request: Pipe
  readonly answer: Pipe
  /** Of an answer. */
  readonly maxBytes: number
}

/** The longest between two looks. */
const WAIT_MS = 20
/** Reads at once, of a peer that never stops writing. */
const DRAINED = 1024

const NOTHING = new Uint8Array()
/** Ends whatever a reader holds the beginning of, be it a line or a frame. */
const END = new Uint8Array([10, 10])

/**
 * The rule. A bridge reads a question, writes its answer, and only then reads on. So whatever stands in the answer FIFO at the moment when
 * the bridge takes the first byte of a question is older than that question, and is thrown away.
 * To know that moment the first byte is offered alone: as long as we can read it back ourselves the bridge has not come to it, whether it
 * is slow, dead, or busy for our predecessor. Once the byte is gone, the answer FIFO is emptied and the rest of the question follows.
 * A question is taken back before we give up, whole or the unread rest of it, so that no later reader starts in its middle; a reader who
 * holds the beginning of one gets its end before the next.
 * It does not cover a bridge that takes the next question before it has answered the last.
 */
export function createTalk({ request, answer, maxBytes }: TalkOptions): Talk {
  let closing: Uint8Array = NOTHING

  function ask(text: string, timeoutMs: number): Asking {
    if (drain(request).length > 0) closing = END
    const until = performance.now() + timeoutMs
    const splitter = createSplitter(maxBytes, true)
    const head = closing.length
    const out = Buffer.concat([closing, Buffer.from(text)])
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
      closing = untouched ? out.subarray(sent, head) : sent < out.length ? END : NOTHING
      return untouched
    }

    function look(): Answer | number {
      if (offering && !recall()) {
        offering = false
        wait = 0.05
        drain(answer)
      }
      if (offering) {
        drain(answer)
        // Not together: who reads all there is would have taken the byte before it has answered what the end completes.
        send(sent < head ? head : head + 1)
      } else {
        send(out.length)
        const bytes = drain(answer)
        const found = splitter.push(bytes)
        if (found.length > 0 && sent === out.length) return settle(found)
        if (bytes.length > 0) wait = 0.05
      }
      const left = until - performance.now()
      wait = Math.min(wait * 2, WAIT_MS)
      if (left > 0) return Math.min(wait, left)
      return { ok: false, why: recall() ? 'unread' : 'timeout' }
    }

    /** What came at once was written in answer to one question: by a bridge that let a blank line through. */
    function settle(found: readonly Line[]): Answer {
      drain(request)
      closing = NOTHING
      const texts = found.map((one) => one.text).filter((one) => one !== '')
      return found.every((one) => one.ok) ? { ok: true, answer: texts.join('\n\n') } : { ok: false, why: 'too_long' }
    }

    return { look, cancel: recall }
  }

  return { ask }
}

/** All that is there. */
function drain(pipe: Pipe): Uint8Array {
  const chunks: Uint8Array[] = []
  while (chunks.length < DRAINED) {
    const bytes = pipe.read()
    if (bytes.length === 0) break
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}
