/** Computes the digest of a thread's source; a replay compares it to make sure that the same threads take part. */

import { sha256 } from '../../kit/sha256.ts'
import type { AnyUserThread } from './thread.ts'

/**
 * SHA-256 in hex over [name, priority, init, source of bid, source of next, uses] as JSON. Functions count by their source text, also
 * within `uses`. The digest does not cover values that a function refers to and that `uses` does not list.
 */
export function threadDigest({ name, priority, init, bid, next, uses = [] }: AnyUserThread & { readonly priority: number }): string {
  const text = JSON.stringify([name, priority, init, bid, next, uses], (_, value) => (typeof value === 'function' ? String(value) : value))
  return sha256(text)
}
