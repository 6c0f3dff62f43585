/** Computes SHA-256 as 64 hex digits, also over canonical JSON, to identify a value by its content. */

import { canonical } from './json.ts'

/** Hashes bytes, or a text as UTF-8. */
export function sha256(content: string | Uint8Array): string {
  return Bun.CryptoHasher.hash('sha256', content, 'hex')
}

/** @throws TypeError when the value has no canonical JSON (a lone surrogate, NaN, a function). */
export function digest(value: unknown): string {
  return sha256(canonical(value))
}
