/** Splits a FIFO's bytes into lines, though writers come and go; it is short because the small program `planck.ts` includes it. */

import type { Line } from './lines.ts'

export type FifoLines = ReturnType<typeof createFifoLines>

/**
 * A line ends only at `\n`; invalid UTF-8 becomes U+FFFD. Of a line longer than `maxBytes` it keeps the beginning and reports it when the
 * line ends.
 */
export function createFifoLines(maxBytes: number) {
  /** One character per byte. */
  let held = ''

  /** Returns the lines that this chunk completes, without their newline. */
  function push(chunk: Uint8Array): Line[] {
    const lines = (held + Buffer.from(chunk).toString('latin1')).split('\n')
    held = (lines.pop() ?? '').slice(0, maxBytes + 1)
    return lines.map((line) => tell(line))
  }

  function tell(line: string, cutOff = ''): Line {
    const error = line.length > maxBytes ? `longer than ${maxBytes} bytes` : cutOff
    const text = Buffer.from(line, 'latin1').toString()
    return error ? { ok: false, text, error } : { ok: true, text }
  }

  /** Ends a partial line, because its writer has left; later bytes do not continue it. Empty without a partial line. */
  function end(): Line[] {
    const found = held ? [tell(held, 'cut off: there is no newline')] : []
    held = ''
    return found
  }

  return { push, end }
}
