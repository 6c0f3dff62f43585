/** Defines what the pass-through must know of an API of models: what a request asks for, and where an answer says what it used. */

import { isObject } from '../../../kit/json.ts'
import type { Vendor } from '../upstream-call.ts'
import type { Failure } from '../vendor-error.ts'

export type Fields = { readonly [name: string]: unknown }

export type Asked = {
  readonly stream: boolean
  /** The longest answer that the request permits, in tokens. */
  readonly output: number | undefined
  /** How many answers it asks for. */
  readonly answers: number
  /** Whether the client itself asked for the counts of a stream. */
  readonly wantsCounts: boolean
}

/** What an answer showed so far. `whole`: the counts are the final ones. `ended`: the vendor has said its last word. */
export type Seen = { input: number; output: number; bytes: number; whole: boolean; ended: boolean }

export type Wire = {
  readonly vendor: Vendor
  /** Below the version of the API. */
  readonly path: string
  /** @throws HttpError 400 for what cannot be metered */
  readonly asked: (body: Fields) => Asked
  /** The request with an answer of at most `output` tokens; undefined when it makes no sense with so few. */
  readonly limited: (body: Fields, output: number, address: string) => Fields | undefined
  /** Takes a whole answer, or one event of a stream. */
  readonly note: (seen: Seen, value: Fields) => void
  /** Whether this is the last event: the client may send its next request when it has it. */
  readonly isLast: (data: string, value: Fields) => boolean
  /** Whether this event is there only because the pass-through asked for it. */
  readonly isExtra: (value: Fields, asked: Asked) => boolean
  /** The event that ends a stream with a failure. */
  readonly stopped: (failure: Failure) => string
}

export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

/** A count that is none is 0, as if it were not there. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.min(Math.ceil(value), 1e9) : 0
}

/** Counts only grow: an event may repeat what an earlier one said. */
export function noteCounts(seen: Seen, { input, output }: { readonly input: number; readonly output: number }): void {
  seen.input = Math.max(seen.input, input)
  seen.output = Math.max(seen.output, output)
}

/** Adds a text of the answer. Counts that came before it were not the final ones. */
export function noteText(seen: Seen, text: unknown): void {
  const bytes = textBytes(text)
  seen.bytes += bytes
  if (bytes > 0) seen.whole = false
}

/** Some vendors leave the tokens of hidden thinking out of the answer's, and count them in the total alone. */
export function outputOf(usage: Fields, { input, output }: { readonly input: string; readonly output: string }): number {
  return Math.max(countOf(usage[output]), countOf(usage.total_tokens) - countOf(usage[input]))
}

/** The UTF-8 bytes of all texts in a value. */
function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + textBytes(item), 0)
  return isObject(value) ? textBytes(Object.values(value)) : 0
}
