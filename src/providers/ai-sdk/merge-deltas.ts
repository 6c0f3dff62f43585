/** Text deltas that arrived together made one: each event that a vendor's library need not validate saves some microseconds. */

export type Delta = {
  /** What an event must contain before the text, so that only plain text is ever joined. */
  readonly within: string
  /** The key and the opening quote of the text. */
  readonly key: string
}

/**
 * Joins neighbouring events that differ in nothing but the text of their delta; all others pass as they are, byte for byte.
 * Works on one piece of the body: an event that is cut by the end of the piece is left alone.
 */
export function mergeDeltas(bytes: Uint8Array, delta: Delta): Uint8Array {
  // Latin 1 keeps every byte; in UTF-8 no byte of a longer character looks like a quote, a backslash or a line end.
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const events = body.split('\n\n')
  if (events.length < 3) return bytes
  const rest = events.pop() ?? ''
  const merged: string[] = []
  let open: { readonly before: string; readonly after: string; text: string } | undefined
  for (const event of events) {
    const parts = partsOf(event, delta)
    if (open !== undefined && parts !== undefined && parts.before === open.before && parts.after === open.after) {
      open.text += parts.text
      continue
    }
    if (open !== undefined) merged.push(open.before + open.text + open.after)
    if (parts === undefined) merged.push(event)
    open = parts
  }
  if (open !== undefined) merged.push(open.before + open.text + open.after)
  return Buffer.from(`${merged.join('\n\n')}\n\n${rest}`, 'latin1')
}

function partsOf(event: string, { within, key }: Delta): { before: string; text: string; after: string } | undefined {
  const start = event.indexOf(key) + key.length
  if (start < key.length) return undefined
  const before = event.slice(0, start)
  if (!before.includes(within)) return undefined
  const end = closingQuote(event, start)
  return end < 0 ? undefined : { before, text: event.slice(start, end), after: event.slice(end) }
}

/** The first quote that an even number of backslashes stands before. */
function closingQuote(text: string, start: number): number {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text[at - 1 - slashes] === '\\' && at - 1 - slashes >= start) slashes++
    if (slashes % 2 === 0) return at
  }
  return -1
}
