/** Server-sent events out of bytes that may be cut anywhere: the `data` of each event, in order. Other fields are nothing to us. */

export type EventReader = {
  /** The events that these bytes complete. */
  take(bytes: Uint8Array): readonly string[]
  /** What the last event had so far when the body ended in the middle of it. */
  rest(): string | undefined
}

const LF = 10
const CR = 13

/** Lines end with LF, CRLF or CR. Bytes are decoded a run of whole lines at a time, so that no character is ever cut. */
export function readEvents(): EventReader {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let line: Uint8Array[] = []
  let data: string | undefined
  let begun = false
  let afterCr = false

  /** The end of the last whole line, 0 when there is none. A lone CR counts only where there is no LF at all. */
  function endOfLines(bytes: Uint8Array): number {
    return bytes.lastIndexOf(LF) + 1 || bytes.lastIndexOf(CR) + 1
  }

  /** Bytes up to `end`, with those of earlier pieces before them. */
  function decode(bytes: Uint8Array, end: number): string {
    const whole = end === bytes.length ? bytes : bytes.subarray(0, end)
    const all = line.length === 0 ? whole : Buffer.concat([...line, whole])
    line = []
    const text = decoder.decode(all)
    const mark = !begun && text.startsWith('\ufeff')
    begun = true
    return mark ? text.slice(1) : text
  }

  function take(piece: Uint8Array): readonly string[] {
    const bytes = afterCr && piece[0] === LF ? piece.subarray(1) : piece
    if (piece.length > 0) afterCr = false
    const end = endOfLines(bytes)
    const events: string[] = []
    if (end > 0) {
      afterCr = end === bytes.length && bytes[end - 1] === CR
      for (const each of linesOf(decode(bytes, end))) field(each, events)
    }
    if (end < bytes.length) line.push(bytes.subarray(end))
    return events
  }

  function field(text: string, events: string[]): void {
    if (text === '') {
      if (data !== undefined && data !== '') events.push(data)
      data = undefined
    } else if (text.startsWith('data:')) {
      const value = text.slice(text[5] === ' ' ? 6 : 5)
      data = data === undefined ? value : `${data}\n${value}`
    }
  }

  return {
    take,
    rest() {
      const last: string[] = []
      for (const each of [...linesOf(`${decode(new Uint8Array(), 0)}\n`), '']) field(each, last)
      return last[0]
    },
  }
}

function linesOf(text: string): readonly string[] {
  const lines = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  return lines.slice(0, -1).split('\n')
}
