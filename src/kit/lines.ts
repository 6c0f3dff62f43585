/** Splits a stream into lines or frames, however the chunks divide them. A frame is a text that ends at a blank line. */

/** `ok: false` reports a line that is too long, as soon as that is known: `text` is its beginning, and the splitter skips the rest. */
export type Line = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly text: string; readonly error: string }

export type LineSplitter = ReturnType<typeof createLineSplitter>

const NEWLINE = 10

/** The part of a line or frame that is too long and still shown, in bytes. */
const SHOWN = 200

/**
 * A line ends only at `\n`. Invalid UTF-8 becomes U+FFFD, or an error of the line if `strict`; chunks of bytes or strings may divide a
 * character. It holds at most `maxBytes` of a line, without its newline.
 * @throws RangeError unless `maxBytes` is a whole number from 1 up.
 */
export function createLineSplitter(maxBytes: number, utf8: 'lenient' | 'strict' = 'lenient') {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1) throw new RangeError(`maxBytes: ${maxBytes} is not a whole number from 1 up`)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const strict = utf8 === 'strict' ? new TextDecoder('utf-8', { ignoreBOM: true, fatal: true }) : decoder
  const encode = createEncoder()
  let held = new Uint8Array(Math.min(1024, maxBytes))
  let length = 0
  let skipping = false

  /** Returns the lines that this chunk completes, without their newline. It keeps a `\r` before the newline. */
  function push(chunk: Uint8Array | string): Line[] {
    return split(encode(chunk))
  }

  function split(bytes: Uint8Array): Line[] {
    const lines: Line[] = []
    let from = 0
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
      lines.push(...store(bytes.subarray(from, at)))
      if (!skipping) lines.push(take())
      skipping = false
      from = at + 1
    }
    lines.push(...store(bytes.subarray(from)))
    return lines
  }

  /** Stores the bytes, or reports that the line is too long. */
  function store(bytes: Uint8Array): Line[] {
    if (skipping) return []
    const room = maxBytes - length
    append(bytes.subarray(0, room))
    if (bytes.length <= room) return []
    skipping = true
    const { text } = take(SHOWN)
    return [{ ok: false, text, error: `line longer than ${maxBytes} bytes, the rest of it is skipped` }]
  }

  function append(bytes: Uint8Array): void {
    if (length + bytes.length > held.length) {
      const larger = new Uint8Array(Math.min(maxBytes, Math.max(held.length * 2, length + bytes.length)))
      larger.set(held.subarray(0, length))
      held = larger
    }
    held.set(bytes, length)
    length += bytes.length
  }

  function take(most = length): Line {
    const bytes = held.subarray(0, Math.min(most, length))
    length = 0
    try {
      return { ok: true, text: strict.decode(bytes) }
    } catch {
      const text = decoder.decode(bytes)
      return { ok: false, text: text.slice(0, SHOWN), error: 'line is not UTF-8 text' }
    }
  }

  /** Returns the last line if it had no newline, complete or not, and resets the splitter. */
  function end(): Line | undefined {
    const over = store(encode(new Uint8Array()))
    const last = over[0] ?? (length > 0 ? take() : undefined)
    skipping = false
    return last
  }

  return { push, end }
}

/** Encodes chunks as bytes. The first half of a surrogate pair waits for the second half in the next string. */
function createEncoder(): (chunk: Uint8Array | string) => Uint8Array {
  const encoder = new TextEncoder()
  let half = ''
  return (chunk) => {
    const before = half
    half = ''
    if (typeof chunk !== 'string') return before === '' ? chunk : Buffer.concat([encoder.encode(before), chunk])
    const text = before + chunk
    if (/[\ud800-\udbff]$/.test(text)) half = text.slice(-1)
    return encoder.encode(half === '' ? text : text.slice(0, -1))
  }
}

export type FifoLines = ReturnType<typeof createFifoLines>

/**
 * Splits a FIFO's bytes into lines, though writers come and go; it is short because the small program `planck.ts` includes it. A line ends
 * only at `\n`; invalid UTF-8 becomes U+FFFD. Of a line longer than `maxBytes` it keeps the beginning and reports it when the
 * line ends.
 */
export function createFifoLines(maxBytes: number) {
  /** One character per byte. */
  let held = ''

  /** Returns the lines that this chunk completes, without their newline. */
  function push(chunk: Uint8Array): Line[] {
    const lines = (held + Buffer.from(chunk).toString('latin1')).split('\n')
    held = (lines.pop() ?? '').slice(0, maxBytes + 1)
    return lines.map((line) => lineOf(line))
  }

  function lineOf(line: string, cutOff = ''): Line {
    const error = line.length > maxBytes ? `longer than ${maxBytes} bytes` : cutOff
    const text = Buffer.from(line, 'latin1').toString()
    return error ? { ok: false, text, error } : { ok: true, text }
  }

  /** Ends a partial line, because its writer has left; later bytes do not continue it. Empty without a partial line. */
  function end(): Line[] {
    const found = held ? [lineOf(held, 'cut off: it has no newline')] : []
    held = ''
    return found
  }

  return { push, end }
}

/**
 * Returns `text` with the blank line that ends it. It puts one space into each blank line inside, so that the line cannot end the frame,
 * and removes newlines at the end of the text. The empty text is a frame too.
 */
export function frame(text: string): string {
  const body = text.replace(/[\r\n]+$/, '')
  return `${body === '' ? '' : body.replace(/(?<=^|\n)(?=\r?\n)/g, ' ')}\n\n`
}

const RETURN = 13

/**
 * A frame is the lines before a blank line, joined by newlines. A lone `\r` counts as blank. It ignores one blank line before a frame,
 * which is left over from the previous frame; two blank lines with nothing before them are the empty frame. Invalid UTF-8 becomes U+FFFD.
 * It holds at most `maxBytes` and one chunk.
 */
export function createSplitter(maxBytes: number) {
  let held = Buffer.alloc(0)
  /** The start of the current unfinished line. */
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
    const report = skipping ? [] : [piece(held.length)]
    held = held.subarray(line).subarray(-2)
    line = 0
    skipping = true
    return report
  }

  return { push }
}
