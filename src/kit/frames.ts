/** Lines and frames out of the FIFOs, however the bytes are torn, in little code: the smallest agent carries it too. A frame ends at a blank line. */

import type { Line } from './lines.ts'

/**
 * `text` and the blank line that ends it. So that a blank line inside cannot end it early, such a line gets one space; newlines at the end
 * of the text go. The empty text is a frame too.
 */
export function frame(text: string): string {
  const body = text.replace(/[\r\n]+$/, '')
  return `${body === '' ? '' : body.replace(/(^|\n)(?=\r?\n)/g, '$1 ')}\n\n`
}

export type Splitter = {
  /** What this chunk completes, without its end. One that is too long is told as soon as that is known, once, with its beginning. */
  push(chunk: Uint8Array): Line[]
  /** True while one has begun and not ended. */
  torn(): boolean
}

/** How much of one that is too long is shown, in UTF-16 units. */
const SHOWN = 200

/**
 * Lines: each `\n` ends one, and nothing else does. Framed: a frame is the lines before a blank one, joined by newlines; a lone `\r` is
 * blank, one blank line before a frame is left over from the frame before, and two with nothing before them are the empty frame.
 * Bytes that are no UTF-8 become U+FFFD. About `maxLength` UTF-16 units are held at most.
 */
export function createSplitter(maxLength: number, framed = false): Splitter {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The lines of a frame so far, then the line that has not ended. */
  let [whole, line] = ['', '']
  let [skipping, blank] = [false, false]

  function add(part: string): Line[] {
    line += part
    const over = whole.length + line.length > maxLength
    const found: Line[] =
      over && !skipping ? [{ ok: false, text: (whole + line).slice(0, SHOWN), error: `longer than ${maxLength} characters` }] : []
    skipping ||= over
    if (skipping) [whole, line] = ['', line.slice(-2)]
    return found
  }

  function endLine(): Line[] {
    const last = line
    line = ''
    if (!framed) whole = `${last}\n`
    else if (last !== '' && last !== '\r') {
      whole += `${last}\n`
      return []
    }
    const ended = !skipping && (blank || whole !== '')
    const found: Line[] = ended ? [{ ok: true, text: whole.slice(0, -1) }] : []
    blank = !skipping && !ended
    skipping = false
    whole = ''
    return found
  }

  return {
    push: (chunk) =>
      decoder
        .decode(chunk, { stream: true })
        .split('\n')
        .flatMap((part, at) => [...(at > 0 ? endLine() : []), ...add(part)]),
    torn: () => skipping || whole + line !== '',
  }
}
