/** Hashes JSON from outside, which may contain values that canonical JSON refuses. */

import { canonical, changeTexts } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'

/**
 * Returns the SHA-256 in hex of the canonical JSON of any value. Values without a canonical form (lone surrogates, NaN) are first replaced,
 * always in the same way.
 */
export function hashJson(value: unknown): string {
  return sha256(canonicalAnyway(value))
}

function canonicalAnyway(value: unknown): string {
  try {
    return canonical(value)
  } catch {
    return canonical(changeTexts(JSON.parse(JSON.stringify(value) ?? 'null'), (text) => text.toWellFormed()))
  }
}
