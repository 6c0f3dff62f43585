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

/** Yields how many ms to wait before it is continued, or fewer when something has arrived. Given up early, it withdraws the question. */
export type Asking = Generator<number, Answer, unknown>

/** A question ends as the wire demands: a line with `\n`, a frame with `\n\n`. One must end before the next begins. */
export type Talk = { ask(text: string, timeoutMs: number): Asking }

export type TalkOptions = {
  readonly request: Pipe
  readonly answer: Pipe
  /** Of an answer, in UTF-16 units. */
  readonly maxLength: number
}

/** The longest between two looks. */
const WAIT_MS = 20

/** Chunks of 64 KiB. */
const DRAINED = 256

const NOTHING = new Uint8Array()
/** Ends whatever a reader holds the beginning of, be it a line or a frame. */
const END = new Uint8Array([10, 10])

/**
 * The rule. A bridge reads a question, writes its answer, and only then reads on. So whatever stands in the answer FIFO at the moment when
 * the bridge takes the first byte of a question is older than that question, and is thrown away.
 * While all is well nobody need know that moment: a bridge that has answered owes nothing. There is doubt after a question that was taken
 * and not answered, after anything unasked, and at the start (the bridge may be busy for our predecessor). In doubt one byte is offered
 * alone; as long as we can read it back ourselves the bridge has not come to it, be it slow or dead. Once the byte is gone, the answer FIFO
 * is emptied and the rest of the question follows.
 * A question is taken back before we give up, whole or the unread rest of it, so that no later reader starts in its middle; a reader who
 * holds the beginning of one gets its end before the next.
 * It does not cover a bridge that takes the next question before it has answered the last.
 */
export function createTalk({ request, answer, maxLength }: TalkOptions): Talk {
  let doubt = true
  let closing: Uint8Array = NOTHING

  function* ask(text: string, timeoutMs: number): Asking {
    if (discard()) doubt = true
    if (withdraw() > 0) leave(END)
    const until = performance.now() + timeoutMs
    const head = closing.length
    const out = Buffer.concat([closing, Buffer.from(text)])
    let sent = 0
    let answered = false

    /** Writes what there is room for, up to here. */
    const send = (to: number): void => {
      sent += request.write(out.subarray(sent, to))
    }
    /** Takes back what nobody has read; true when nobody has begun to read it. */
    const recall = (): boolean => {
      sent -= withdraw()
      const untouched = sent <= head
      if (untouched) closing = out.subarray(sent, head)
      else if (!answered) leave(sent < out.length ? END : NOTHING)
      return untouched
    }
    const left = (): number => until - performance.now()

    try {
      for (let wait = 1; doubt; wait = Math.min(wait * 2, WAIT_MS)) {
        discard()
        send(head + 1)
        yield Math.min(wait, left())
        if (!recall()) break
        if (left() <= 0) return { ok: false, why: 'unread' }
      }
      discard()
      const frames = createSplitter(maxLength, true)
      for (let wait = 1; ; wait = Math.min(wait * 2, WAIT_MS)) {
        send(out.length)
        const bytes = answer.read()
        const found = bytes ? frames.push(bytes) : []
        if (found.length > 0 && sent === out.length) {
          answered = true
          closing = NOTHING
          doubt = frames.torn() || found.some((one, at) => !one.ok || (at > 0 && one.text !== ''))
          return joined(found)
        }
        if (left() <= 0) return { ok: false, why: recall() ? 'unread' : 'timeout' }
        if (bytes) wait = 1
        yield Math.min(wait, left())
      }
    } finally {
      recall()
    }
  }

  function leave(end: Uint8Array): void {
    closing = end
    doubt = true
  }

  /** How many bytes of a question nobody had read. */
  function withdraw(): number {
    return drain(request).length
  }

  /** True when that was more than newlines. */
  function discard(): boolean {
    return drain(answer).some((byte) => byte > 13)
  }

  return { ask }
}

/** All that is there, unless somebody never stops writing. */
function drain(pipe: Pipe): Uint8Array {
  const chunks: Uint8Array[] = []
  while (chunks.length < DRAINED) {
    const bytes = pipe.read()
    if (!bytes) break
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** What came at once was written in answer to one question: a bridge that let a blank line through. */
function joined(frames: readonly Line[]): Answer {
  if (frames.some((frame) => !frame.ok)) return { ok: false, why: 'too_long' }
  const texts = frames.map((frame) => frame.text).filter((text) => text !== '')
  return { ok: true, answer: texts.join('\n\n') }
}
