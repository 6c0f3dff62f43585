/** Frames on the FIFOs: texts that end at a blank line, and how they are found however the bytes are torn. */

import type { Line } from './lines.ts'

/**
 * `text` and the blank line that ends it. So that a blank line inside cannot end it early, such a line gets one space; newlines at the end
 * of the text go. The empty text is a frame too.
 */
export function frame(text: string): string {
  const body = text.replace(/[\r\n]+$/, '')
  return `${body === '' ? '' : body.replace(/(?<=^|\n)(?=\r?\n)/g, ' ')}\n\n`
}

export type Splitter = {
  /** What this chunk completes, without its end. One that is too long is told as soon as that is known, once, with its beginning. */
  push(chunk: Uint8Array): Line[]
}

/** How much of one that is too long is shown, in bytes. */
const SHOWN = 200
const NEWLINE = 10
const RETURN = 13

/**
 * A frame is the lines before a blank one, joined by newlines; a lone `\r` is blank, one blank line before a frame is left over from the frame
 * before, and two with nothing before them are the empty frame.
 * Bytes that are no UTF-8 become U+FFFD. At most `maxBytes` and a chunk are held.
 */
export function createSplitter(maxBytes: number): Splitter {
  let held = Buffer.alloc(0)
  /** Where the line begins that has not ended. */
  let line = 0
  let [skipping, blank] = [false, false]

  function push(chunk: Uint8Array): Line[] {
    const found: Line[] = []
    let from = held.length
    held = Buffer.concat([held, chunk])
    for (let at = held.indexOf(NEWLINE, from); at >= 0; at = held.indexOf(NEWLINE, from)) {
      from = at + 1
      if (at > line && !(at === line + 1 && held[line] === RETURN)) line = from
      else {
        found.push(...take(line - 1))
        held = held.subarray(from)
        line = from = 0
      }
    }
    return [...found, ...skip()]
  }

  /** The bytes before `end`; below 0 when there was nothing but a blank line. */
  function take(end: number): Line[] {
    const whole = !skipping && (end >= 0 || blank)
    blank = !skipping && !whole
    skipping = false
    return whole ? [piece(end)] : []
  }

  function piece(end: number): Line {
    const over = end > maxBytes
    const text = held.subarray(0, over ? SHOWN : Math.max(0, end)).toString()
    return over ? { ok: false, text, error: `longer than ${maxBytes} bytes` } : { ok: true, text }
  }

  /** Keeps no more of one that is too long than shows whether its line is blank. */
  function skip(): Line[] {
    if (!skipping && held.length <= maxBytes) return []
    const told = skipping ? [] : [piece(held.length)]
    held = held.subarray(line).subarray(-2)
    line = 0
    skipping = true
    return told
  }

  return { push }
}
