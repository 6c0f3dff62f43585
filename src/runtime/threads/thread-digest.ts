/** The digest of a thread's source: what a replay compares, so that the very same threads take part. */

import { sha256 } from '../../kit/sha256.ts'
import type { AnyUserThread } from './thread.ts'

/**
 * SHA-256 in hex over [name, priority, init, source of bid, source of next, uses] as JSON. Functions count by their source text, also within
 * `uses`; what a function only names and `uses` does not list is not seen.
 */
export function threadDigest({ name, priority, init, bid, next, uses = [] }: AnyUserThread & { readonly priority: number }): string {
  const text = JSON.stringify([name, priority, init, bid, next, uses], (_, value) => (typeof value === 'function' ? String(value) : value))
  return sha256(text)
}
