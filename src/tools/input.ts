/** Reads unvalidated arguments, and builds the results that tools return. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { ToolResult } from '../runtime/port.ts'

/** For `touches`, which must answer for any input; when the tool runs, the schema has already refused everything except text. */
export function textOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

export function done(output: string, metadata?: JsonObject): ToolResult {
  return { success: true, output, metadata }
}

export function fail(error: string, output = ''): ToolResult {
  return { success: false, output, error }
}

/** Turns a refusal of the workspace or the network into a result. */
export function refused({ denied, message }: { readonly denied?: string; readonly message: string }): ToolResult {
  return denied === undefined ? fail(message) : { ...fail(message), deniedBy: denied }
}
