/** Reads counts and measures texts in the answers of models. */

import { isObject } from '../../../kit/json.ts'
import type { Fields, Seen } from './wire.ts'

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
