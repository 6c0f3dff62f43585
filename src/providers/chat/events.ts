/** Parses server-sent events from bytes that may be cut anywhere: returns the `data` of each event in order and skips other fields. */

export type EventReader = ReturnType<typeof readEvents>

const LF = 10
const CR = 13

/** Maps the name and data of a named event to its data; an empty result drops the event. */
type Named = (name: string, data: string) => string

/** Lines end with LF, CRLF or CR. Decodes only whole lines, so that no character is cut. */
export function readEvents(named: Named = (_, data) => data) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let line: Uint8Array[] = []
  let data: string | undefined
  let name = ''
  let begun = false
  let afterCr = false

  /** Decodes bytes that end with a line end, together with the bytes kept from earlier pieces; ends every line with LF. */
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
    // Older llama.cpp servers report an error in a field of this name.
    else if (text.startsWith('error:')) [name, data] = ['error', text.slice(6)]
  }

  return {
    /** Returns the events that these bytes complete. */
    take(piece: Uint8Array): readonly string[] {
      const bytes = afterCr && piece[0] === LF ? piece.subarray(1) : piece
      // A lone CR ends a line only if the piece contains no LF.
      const end = bytes.lastIndexOf(LF) + 1 || bytes.lastIndexOf(CR) + 1
      if (piece.length > 0) afterCr = end > 0 && end === bytes.length && bytes[end - 1] === CR
      const whole = end === bytes.length ? bytes : bytes.subarray(0, end)
      const events = end > 0 ? read(decode(whole)) : []
      if (end < bytes.length) line.push(bytes.subarray(end))
      return events
    },
    /** Returns the data of an incomplete last event when the body ended inside it. */
    rest: () => read(`${decode(new Uint8Array())}\n\n`)[0],
  }
}
