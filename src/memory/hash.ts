/** Hashes of, and changes to, JSON that outsiders made, which may hold what canonical JSON refuses. */

import { canonical, isObject } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'

/** SHA-256 in hex of the canonical JSON of any value. What has no canonical form (lone surrogates, NaN) is first replaced, always alike. */
export function hashJson(value: unknown): string {
  return sha256(canonicalAnyway(value))
}

function canonicalAnyway(value: unknown): string {
  try {
    return canonical(value)
  } catch {
    return canonical(changeText(JSON.stringify(value) ?? 'null', (text) => text.toWellFormed()))
  }
}

/** Parses JSON with every string, keys too, put through `change`. */
export function changeText<T>(json: string, change: (text: string) => string): T {
  return JSON.parse(json, (_key, value: unknown) => {
    if (typeof value === 'string') return change(value)
    if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, member]) => [change(key), member]))
    return value
  })
}
