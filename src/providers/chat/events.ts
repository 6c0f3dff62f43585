/** Server-sent events out of bytes that may be cut anywhere: the `data` of each event, in order. Comments and other fields are skipped. */

export type EventReader = {
  /** The events that these bytes complete. */
  take(bytes: Uint8Array): readonly string[]
  /** What the last event had so far when the body ended in the middle of it. */
  rest(): string | undefined
}

const LF = 10
const CR = 13

/** What is made of the data of an event that has a name; nothing when that is empty. */
type Named = (name: string, data: string) => string

/** Lines end with LF, CRLF or CR. Bytes are decoded a run of whole lines at a time, so that no character is ever cut. */
export function readEvents(named: Named = (_, data) => data): EventReader {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let line: Uint8Array[] = []
  let data: string | undefined
  let name = ''
  let begun = false
  let afterCr = false

  /** Bytes that end with a line, with those of earlier pieces before them; every line of the text ends with LF. */
  function decode(bytes: Uint8Array): string {
    const text = decoder.decode(line.length === 0 ? bytes : Buffer.concat([...line, bytes]))
    line = []
    const mark = !begun && text.startsWith('\ufeff')
    begun = true
    const lines = mark ? text.slice(1) : text
    return lines.includes('\r') ? lines.replace(/\r\n?/g, '\n') : lines
  }

  function read(lines: string): readonly string[] {
    const events: string[] = []
    for (let start = 0, end = lines.indexOf('\n'); end >= 0; start = end + 1, end = lines.indexOf('\n', start)) {
      if (start < end) field(lines.slice(start, end))
      else {
        const event = data && name ? named(name, data) : data
        if (event) events.push(event)
        data = undefined
        name = ''
      }
    }
    return events
  }

  function field(text: string): void {
    if (text.startsWith('data:')) {
      const value = text.slice(text[5] === ' ' ? 6 : 5)
      data = data === undefined ? value : `${data}\n${value}`
    } else if (text.startsWith('event:')) name = text.slice(6).trim()
    // Older llama.cpp servers report an error in a field of that name.
    else if (text.startsWith('error:')) [name, data] = ['error', text.slice(6)]
  }

  return {
    take(piece) {
      const bytes = afterCr && piece[0] === LF ? piece.subarray(1) : piece
      // A lone CR ends a line only where there is no LF at all.
      const end = bytes.lastIndexOf(LF) + 1 || bytes.lastIndexOf(CR) + 1
      if (piece.length > 0) afterCr = end > 0 && end === bytes.length && bytes[end - 1] === CR
      const whole = end === bytes.length ? bytes : bytes.subarray(0, end)
      const events = end > 0 ? read(decode(whole)) : []
      if (end < bytes.length) line.push(bytes.subarray(end))
      return events
    },
    rest: () => read(`${decode(new Uint8Array())}\n\n`)[0],
  }
}
