/** Reads where a subscription continues: the number of a journal entry, or the id of an event. */

import { FailureError } from '../failure.ts'

/** After all parts of the entry, or after this part of it. */
export type Position = { readonly seq: number; readonly part?: number }

/** @throws FailureError `usage` when it is neither a number nor an id */
export function parsePosition(after: number | string): Position {
  const [, seq, part] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(String(after)) ?? []
  if (seq !== undefined) return { seq: Number(seq), ...(part === undefined ? {} : { part: Number(part) }) }
  throw new FailureError(
    'usage',
    `${JSON.stringify(after)} is not an event id; give the id of the last event that was seen, such as "812.1", or 0`,
  )
}
