/** Matches exactly the canonical receipts with a regular expression, which is faster than parsing a line and serialising it again. */

import { sha256 } from '../../kit/sha256.ts'
import type { Receipt } from './receipt.ts'

/** The fields of a line that the chain needs. `content` is the computed hash, `own` the hash in the line. */
export type LinkText = {
  readonly logId: string
  readonly seq: number
  readonly previous: string
  readonly own: string
  readonly mac: string
  readonly content: string
}

const hash = '[0-9a-f]{64}'
/** Strings as RFC 8785 writes them: escapes only where required, in their shortest form. No lone surrogates. */
const text = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"`
const time = String.raw`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z`

/** The three named groups are hashed; `mac` and `receipt_hash` between them are not. */
const source =
  `^(?<front>\\{(?:"approval":${text},)?"args_hash":"${hash}",(?<changes>"changes":"(?:none|direct|dropped|pending|${hash})",)?"conversation_id":${text},(?:"error":${text},)?"id":${text},` +
  `"log_id":"(?<logId>[0-9a-f]{32})",)"mac":"(?<mac>${hash})",(?<middle>"previous_hash":"(?<previous>${hash})",)"receipt_hash":"(?<own>${hash})",` +
  `(?<back>"result_hash":"${hash}","risk":"(?:low|medium|high)",(?<sandbox>"sandbox":"(?:bubblewrap|landlock|none)",)?` +
  `"seq":(?<seq>[1-9][0-9]{0,14}),"status":"(?:allowed|denied|failed)","timestamp":"${time}","tool":${text},"v":(?<v>[123])\\})$`

/** Compiled on first use, because most starts read no line; the engine caches the result. */
const line = () => new RegExp(source)

/** Rejects fields that receipts of this version do not have: the sandbox is in all but version 1, the changes are in version 3. */
function parts(from: string): { readonly [name: string]: string } | undefined {
  const found = line().exec(from)?.groups
  if (found === undefined || (found.v === '1' && found.sandbox !== undefined)) return undefined
  return found.v !== '3' && found.changes !== undefined ? undefined : found
}

/** @returns undefined unless the line is a receipt in canonical form, byte for byte. */
export function readLink(from: string): LinkText | undefined {
  const found = parts(from)
  if (!found) return undefined
  const { front, logId = '', mac = '', middle, previous = '', own = '', back, seq } = found
  return { logId, seq: Number(seq), previous, own, mac, content: sha256(`${front}${middle}${back}`) }
}

/** Returns the receipt in a line without checking its hashes; undefined when it is not in canonical form. */
export function readReceipt(from: string): Receipt | undefined {
  return parts(from) ? JSON.parse(from) : undefined
}
