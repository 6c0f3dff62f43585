/** The exact grammar of a log line: it matches canonical receipts and nothing else, faster than parsing and spelling them again would. */

import { sha256 } from '../../kit/sha256.ts'
import type { Receipt } from './receipt.ts'

/** What the chain needs of a line. `content` is the hash its content has, `own` the one it claims. */
export type LinkText = {
  readonly logId: string
  readonly seq: number
  readonly previous: string
  readonly own: string
  readonly mac: string
  readonly content: string
}

const hash = '[0-9a-f]{64}'
/** As RFC 8785 writes strings: nothing escaped that need not be, and that in its shortest form. No lone surrogates. */
const text = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"`
const time = String.raw`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z`

/** The three named parts that are hashed stand around `mac` and `receipt_hash`, which are not. */
const source =
  `^(?<front>\\{(?:"approval":${text},)?"args_hash":"${hash}","conversation_id":${text},(?:"error":${text},)?"id":${text},` +
  `"log_id":"(?<logId>[0-9a-f]{32})",)"mac":"(?<mac>${hash})",(?<middle>"previous_hash":"(?<previous>${hash})",)"receipt_hash":"(?<own>${hash})",` +
  `(?<back>"result_hash":"${hash}","risk":"(?:low|medium|high)",(?<sandbox>"sandbox":"(?:bubblewrap|landlock|none)",)?` +
  `"seq":(?<seq>[1-9][0-9]{0,14}),"status":"(?:allowed|denied|failed)","timestamp":"${time}","tool":${text},"v":(?<v>[12])\\})$`

/** Made when the first line is read, which most starts never do; the engine keeps what it compiled. */
const line = () => new RegExp(source)

/** A receipt of version 1 cannot speak of a sandbox. */
function parts(from: string): { readonly [name: string]: string } | undefined {
  const found = line().exec(from)?.groups
  return found?.v === '1' && found.sandbox !== undefined ? undefined : found
}

/** @returns undefined when the line is not a receipt in canonical form, to the byte. */
export function readLink(from: string): LinkText | undefined {
  const found = parts(from)
  if (!found) return undefined
  const { front, logId = '', mac = '', middle, previous = '', own = '', back, seq } = found
  return { logId, seq: Number(seq), previous, own, mac, content: sha256(`${front}${middle}${back}`) }
}

/** The receipt a line holds, its hashes unchecked; undefined when it is not in canonical form. */
export function readReceipt(from: string): Receipt | undefined {
  return parts(from) ? JSON.parse(from) : undefined
}
