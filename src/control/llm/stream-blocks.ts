/** Splits a stream of server-sent events into its events without changing a byte, so that each can be read and passed on. */

export type EventBlock = {
  /** The event as it was sent, with the empty line that ends it. */
  readonly bytes: Uint8Array
  /** Its data; lines are joined by a line break. */
  readonly data: string
}

/** A longer event is an error. */
export const maxBlockBytes = 33_554_432

export type BlockReader = {
  /** @throws RangeError for an event of more than 32 MiB */
  take(piece: Uint8Array): readonly EventBlock[]
  /** Returns what follows the last empty line. */
  rest(): EventBlock | undefined
}

/** Joins a long event once, when its end arrives, so that the cost is linear in its length. */
export function readBlocks(): BlockReader {
  const state = { pieces: [] as Uint8Array[], bytes: 0, tail: new Uint8Array() }

  function keep(piece: Uint8Array): void {
    if (piece.length > 0) state.pieces.push(piece)
    state.bytes += piece.length
    state.tail = Buffer.concat([state.tail, piece.subarray(-tailBytes)]).subarray(-tailBytes)
    if (state.bytes > maxBlockBytes) throw new RangeError(`the model sent an event of more than ${maxBlockBytes} bytes`)
  }

  function drain(last: Uint8Array): Uint8Array {
    const whole = Buffer.concat([...state.pieces, last])
    Object.assign(state, { pieces: [], bytes: 0, tail: new Uint8Array() })
    return whole
  }

  return {
    take(piece) {
      const blocks: EventBlock[] = []
      const hasEnd = endOfBlock(Buffer.concat([state.tail, piece])) >= 0
      let left = hasEnd ? drain(piece) : piece
      for (let end = hasEnd ? endOfBlock(left) : -1; end >= 0; end = endOfBlock(left)) {
        blocks.push(blockOf(left.subarray(0, end)))
        left = left.subarray(end)
      }
      keep(left)
      return blocks
    },
    rest: () => (state.bytes === 0 ? undefined : blockOf(drain(new Uint8Array()))),
  }
}

/** A line break that began in an earlier piece has at most this many bytes. */
const tailBytes = 3
const [LF, CR] = [10, 13]

/** @returns the byte after the first empty line, or -1; lines end with LF, CRLF or CR */
function endOfBlock(bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; at += 1) {
    const line = lineEnd(bytes, at)
    const empty = line === 0 ? 0 : lineEnd(bytes, at + line)
    if (empty > 0) return at + line + empty
    // The second half of a CRLF is not a line of its own.
    if (line === 2) at += 1
  }
  return -1
}

/** Returns how many bytes end a line here; 0 when none do. */
function lineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === LF) return 1
  if (bytes[at] !== CR) return 0
  return bytes[at + 1] === LF ? 2 : 1
}

function blockOf(bytes: Uint8Array): EventBlock {
  return { bytes, data: dataOf(bytes) }
}

function dataOf(bytes: Uint8Array): string {
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\r|\n/)
  return lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(line[5] === ' ' ? 6 : 5)] : [])).join('\n')
}
