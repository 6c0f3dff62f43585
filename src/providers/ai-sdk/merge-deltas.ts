/** Merges text deltas that arrived together: each event that a vendor's library need not validate saves some microseconds. */

export type Delta = {
  /** Text that an event must contain before its delta, so that only plain text is merged. */
  readonly within: string
  /** The key and the opening quote of the text. */
  readonly key: string
}

/**
 * Merges neighbouring events that differ only in the text of their delta, and passes all other events unchanged, byte for byte. Works on
 * one piece of the body: an event that the end of the piece cuts stays unchanged.
 */
export function mergeDeltas(bytes: Uint8Array, delta: Delta): Uint8Array {
  // Latin 1 preserves every byte; in UTF-8 no byte of a multi-byte character looks like a quote, a backslash or a line end.
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

/** Finds the first quote after an even number of backslashes. */
function closingQuote(text: string, start: number): number {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text[at - 1 - slashes] === '\\' && at - 1 - slashes >= start) slashes++
    if (slashes % 2 === 0) return at
  }
  return -1
}
