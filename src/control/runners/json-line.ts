/** Reads one line of a runner's JSON output without trusting its shape. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { RunnerEvent } from './runner.ts'

export type Fields = { readonly [name: string]: unknown }

/** @returns undefined for a line that is not a JSON object */
export function fieldsOf(line: string): Fields | undefined {
  const value = line.startsWith('{') ? parseJson(line) : undefined
  return isObject(value) ? value : undefined
}

export function objectIn(fields: Fields | undefined, name: string): Fields | undefined {
  const value = fields?.[name]
  return isObject(value) ? value : undefined
}

/** @returns an empty text for anything but text */
export function textIn(fields: Fields | undefined, name: string): string {
  const value = fields?.[name]
  return typeof value === 'string' ? value : ''
}

/** @returns the whole number from 0 up under this name, else 0: a runner may report anything */
export function countIn(fields: Fields | undefined, name: string): number {
  const value = fields?.[name]
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

/** Joins the texts of a list of content blocks such as `[{"type":"text","text":"…"}]`. */
export function textOfBlocks(value: unknown): string {
  if (!Array.isArray(value)) return ''
  return value.flatMap((block: unknown) => (isObject(block) && block.type === 'text' ? [textIn(block, 'text')] : [])).join('')
}

/** A name that may become an argument of a later run; whatever else a program calls its session is none. */
export function sessionEvents(id: string): readonly RunnerEvent[] {
  return /^[A-Za-z0-9][\w-]{0,127}$/.test(id) ? [{ type: 'session', id }] : []
}
