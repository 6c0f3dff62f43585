/** Parses server-sent events from bytes that may be cut anywhere: returns the `data` of each event in order and skips other fields. */

import { createParser } from 'eventsource-parser'

export type EventReader = ReturnType<typeof readEvents>

/** Maps the name and data of a named event to its data; an empty result drops the event. */
type Named = (name: string, data: string) => string

export function readEvents(named: Named = (_, data) => data) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const events: string[] = []
  let begun = ''

  function add(name: string, data: string): void {
    const event = data && name ? named(name, data) : data
    if (event) events.push(event)
  }

  const parser = createParser({
    onEvent: ({ event = '', data }) => add(event.trim(), data),
    // Older llama.cpp servers report an error in a field of this name.
    onError: ({ field, value = '' }) => field === 'error' && add(field, value),
  })

  function feed(lines: string): readonly string[] {
    parser.feed(lines)
    return events.splice(0)
  }

  return {
    /** Returns the events that these bytes complete. */
    take(piece: Uint8Array): readonly string[] {
      const text = decoder.decode(piece, { stream: true })
      // A lone CR ends a line only if the piece contains no LF.
      const end = text.lastIndexOf('\n') + 1 || text.lastIndexOf('\r') + 1
      // The parser drops the beginning of a line whose field it does not know, so it gets whole lines.
      const lines = end === 0 ? '' : begun + text.slice(0, end)
      begun = end === 0 ? begun + text : text.slice(end)
      return feed(lines)
    },
    /** Returns the data of an incomplete last event when the body ended inside it. */
    rest: () => feed(`${begun}${decoder.decode()}\n\n`)[0],
  }
}
