/** Splits a stream into lines, however the chunks divide them. */

/** `ok: false` reports a line that is too long, as soon as that is known: `text` is its beginning, and the splitter skips the rest. */
export type Line = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly text: string; readonly error: string }

export type LineSplitter = ReturnType<typeof createLineSplitter>

const NEWLINE = 10

/** How much of a line that is too long is shown, in bytes. */
const SHOWN = 200

/**
 * A line ends only at `\n`. Invalid UTF-8 becomes U+FFFD; chunks of bytes or strings may divide a character. It holds at most `maxBytes` of
 * a line, without its newline.
 * @throws RangeError unless `maxBytes` is a whole number from 1 up.
 */
export function createLineSplitter(maxBytes: number) {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1) throw new RangeError(`maxBytes: ${maxBytes} is no whole number from 1 up`)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
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
      lines.push(...hold(bytes.subarray(from, at)))
      if (!skipping) lines.push(take())
      skipping = false
      from = at + 1
    }
    lines.push(...hold(bytes.subarray(from)))
    return lines
  }

  /** Stores the bytes, or reports that the line is too long. */
  function hold(bytes: Uint8Array): Line[] {
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
    const text = decoder.decode(held.subarray(0, Math.min(most, length)))
    length = 0
    return { ok: true, text }
  }

  /** Returns the last line if it had no newline, complete or not, and resets the splitter. */
  function end(): Line | undefined {
    const over = hold(encode(new Uint8Array()))
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
