/** Reading validated arguments, and the shape of what tools hand back. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { ToolResult } from '../runtime/port.ts'

/** @throws TypeError when the schema check was left out */
export function text(input: JsonObject, key: string, otherwise?: string): string {
  const value = input[key] ?? otherwise
  if (typeof value !== 'string') throw new TypeError(`"${key}" must be text, got ${JSON.stringify(value)}`)
  return value
}

/** For `touches`, which must answer for any input; the schema has refused everything but text by then. */
export function textOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

/** @throws TypeError when the schema check was left out */
export function count(input: JsonObject, key: string, otherwise: number): number {
  const value = input[key] ?? otherwise
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw new TypeError(`"${key}" must be a whole number from 1, got ${JSON.stringify(value)}`)
  return value
}

export function done(output: string, metadata?: JsonObject): ToolResult {
  return { success: true, output, ...(metadata === undefined ? {} : { metadata }) }
}

export function fail(error: string, output = ''): ToolResult {
  return { success: false, output, error }
}

/** A refusal value of the workspace or the network as a result. */
export function refused({ denied, message }: { readonly denied?: string; readonly message: string }): ToolResult {
  return denied === undefined ? fail(message) : { ...fail(message), deniedBy: denied }
}
