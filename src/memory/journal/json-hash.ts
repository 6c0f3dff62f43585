/** Hashes of JSON that outsiders made, which may hold what canonical JSON refuses. */

import { canonical, changeTexts } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'

/** SHA-256 in hex of the canonical JSON of any value. What has no canonical form (lone surrogates, NaN) is first replaced, always alike. */
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
