/** Identifies things: SHA-256 as 64 hex digits, also over canonical JSON, identifies a value by its content; an id is a prefix and random bytes. */

import { canonical } from './json.ts'

/** Hashes bytes, or a text as UTF-8. */
export function sha256(content: string | Uint8Array): string {
  return Bun.CryptoHasher.hash('sha256', content, 'hex')
}

/** @throws TypeError when the value has no canonical JSON (a lone surrogate, NaN, a function). */
export function digest(value: unknown): string {
  return sha256(canonical(value))
}

/** Digits and lower-case letters without i, l, o and u, which people misread. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * Returns `run_3k5v9…`: the prefix, an underscore and the bytes in base 32 (8 characters for 5 bytes). Safe in file names, URLs and shells.
 * @param bytes at least 8 random bytes; the caller supplies them because this folder has no source of randomness.
 * @throws TypeError on a prefix other than lower-case letters and digits, RangeError on fewer than 8 bytes.
 */
export function createId(prefix: string, bytes: Uint8Array): string {
  if (!/^[a-z][a-z0-9]*$/.test(prefix)) throw new TypeError(`id prefix "${prefix}": use lower-case letters and digits, a letter first`)
  if (bytes.length < 8) throw new RangeError(`id of ${bytes.length} random bytes: fewer than 8 may name two things alike`)
  return `${prefix}_${base32(bytes)}`
}

function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + ALPHABET[(held << (5 - bits)) & 31]
}
