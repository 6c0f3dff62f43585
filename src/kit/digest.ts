/** Computes SHA-256 over canonical JSON, to identify a value by its content. */

import { canonical } from './json.ts'
import { sha256 } from './sha256.ts'

/** 64 hex digits. @throws TypeError when the value has no canonical JSON (a lone surrogate, NaN, a function). */
export function digest(value: unknown): string {
  return sha256(canonical(value))
}
