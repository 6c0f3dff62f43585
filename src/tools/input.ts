/** Reading arguments that nobody has checked yet, and the shape of what tools hand back. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { ToolResult } from '../runtime/port.ts'

/** For `touches`, which must answer for any input; the schema has refused everything but text by then. */
export function textOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
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
