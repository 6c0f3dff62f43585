/** Lines out of a FIFO, into which writers come and go and may die in the middle of a line. Little code: the smallest agent carries it too. */

import type { Line } from './lines.ts'

export type FifoLines = {
  /** The lines that this chunk completes, without their newline. */
  push(chunk: Uint8Array): Line[]
  /** The line that was begun is not ended by what comes next: its writer has left. None when none was begun. */
  end(): Line[]
}

/**
 * A line ends at `\n` alone; bytes that are no UTF-8 become U+FFFD. Of a line longer than `maxBytes` the beginning is kept, and told when the
 * line ends.
 */
export function createFifoLines(maxBytes: number): FifoLines {
  /** One character a byte. */
  let held = ''

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

  function end(): Line[] {
    const found = held ? [tell(held, 'cut off: there is no newline')] : []
    held = ''
    return found
  }

  return { push, end }
}
