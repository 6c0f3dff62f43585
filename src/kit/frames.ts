/** Splits the bytes of a FIFO into frames: texts that end at a blank line, however the chunks divide them. */

import type { Line } from './lines.ts'

/**
 * Returns `text` with the blank line that ends it. It puts one space into each blank line inside, so that the line cannot end the frame,
 * and removes newlines at the end of the text. The empty text is a frame too.
 */
export function frame(text: string): string {
  const body = text.replace(/[\r\n]+$/, '')
  return `${body === '' ? '' : body.replace(/(?<=^|\n)(?=\r?\n)/g, ' ')}\n\n`
}

export type Splitter = ReturnType<typeof createSplitter>

/** How much of a frame that is too long is shown, in bytes. */
const SHOWN = 200
const NEWLINE = 10
const RETURN = 13

/**
 * A frame is the lines before a blank line, joined by newlines. A lone `\r` counts as blank. It ignores one blank line before a frame,
 * which is left over from the previous frame; two blank lines with nothing before them are the empty frame. Invalid UTF-8 becomes U+FFFD.
 * It holds at most `maxBytes` and one chunk.
 */
export function createSplitter(maxBytes: number) {
  let held = Buffer.alloc(0)
  /** Where the current unfinished line begins. */
  let line = 0
  let [skipping, blank] = [false, false]

  /**
   * Returns the frames that this chunk completes, without the blank line. It reports a frame that is too long at once, with its beginning.
   */
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

  /** Takes the bytes before `end`; `end` is below 0 when there was only a blank line. */
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

  /** Discards a frame that is too long, except the bytes that show whether its current line is blank. */
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
