/** Defines a receipt: its fields, its canonical bytes, its hash, and how a line is read. */

import { sha256 } from '../../kit/sha256.ts'
import type { Risk, ToolOutcome } from '../../runtime/event.ts'
import type { SandboxName } from '../../sandbox/contract.ts'

/**
 * `timestamp` is ISO 8601 in UTC; every hash is SHA-256 in lower-case hex. `args_hash` and `result_hash` cover canonical JSON.
 * `receipt_hash` covers the canonical JSON of all fields except itself and `mac`; `mac` is HMAC-SHA256(key, receipt_hash), if there is a
 * key. `seq` counts from 1 and continues across segments, as `previous_hash` does; the first receipt has sixty-four zeros there. `v` is 3;
 * receipts of older programs do not record the changes (versions 1 and 2) and the sandbox (version 1).
 */
export type Receipt = {
  readonly v: 1 | 2 | 3
  readonly seq: number
  readonly log_id: string
  readonly id: string
  readonly timestamp: string
  readonly conversation_id: string
  readonly tool: string
  readonly args_hash: string
  readonly result_hash: string
  readonly status: ToolOutcome['status']
  readonly risk: Risk
  /** The person or rule that gave the required approval. */
  readonly approval?: string
  readonly error?: string
  /** The sandbox of the call's child processes; absent when it started none. With sandboxing switched off, every receipt says `none`. */
  readonly sandbox?: SandboxName
  /**
   * The fate of the changes that the call made on a private view of the workspace: their digest when they were applied, else `none`,
   * `dropped`, or `pending` while they wait for a person; `direct` when it changed the workspace itself. Absent when it started no confined
   * child.
   */
  readonly changes?: string
  readonly previous_hash: string
  readonly receipt_hash: string
  readonly mac?: string
}

type Unsealed = Omit<Receipt, 'receipt_hash' | 'mac'>

export const genesis = '0'.repeat(64)

/** Returns the canonical JSON (RFC 8785) of the whole receipt: its line in the log, without the newline. Assembled by hand for speed. */
export function lineOf(receipt: Receipt): string {
  const seal = receipt.mac === undefined ? '' : `"mac":"${receipt.mac}",`
  return `${front(receipt)}${seal}${previous(receipt)}"receipt_hash":"${receipt.receipt_hash}",${back(receipt)}`
}

export function macOf(key: Uint8Array, text: string): string {
  return new Bun.CryptoHasher('sha256', key).update(text).digest('hex')
}

/** Returns the mac of a receipt with this hash; none with the empty key. */
export function sealOf(key: Uint8Array, hash: string): string | undefined {
  return key.length === 0 ? undefined : macOf(key, hash)
}

/** Texts in `unsealed` must be well-formed: a lone surrogate has no bytes to hash. */
export function sealed(unsealed: Unsealed, key: Uint8Array): Receipt {
  const receipt_hash = sha256(front(unsealed) + previous(unsealed) + back(unsealed))
  return { ...unsealed, receipt_hash, mac: sealOf(key, receipt_hash) }
}

/**
 * Hashes a line without its own hash `own` and its mac. If the result equals `own`, the line is the receipt that was sealed under it, byte
 * for byte except for the mac, which is not checked here. No text in a receipt can imitate the two removed members, because every quote in
 * a text follows a backslash.
 */
export function contentHash(line: string, own: string): string {
  return sha256(without(without(line, '"mac":"', own.length), '"receipt_hash":"', own.length))
}

function without(line: string, member: string, length: number): string {
  const at = line.indexOf(member)
  return at < 0 ? line : line.slice(0, at) + line.slice(at + member.length + length + 2)
}

function front({ approval, args_hash, changes, conversation_id, error, id, log_id }: Unsealed): string {
  const approved = approval === undefined ? '' : `"approval":${JSON.stringify(approval)},`
  const failed = error === undefined ? '' : `"error":${JSON.stringify(error)},`
  const changed = changes === undefined ? '' : `"changes":"${changes}",`
  const whose = `"args_hash":"${args_hash}",${changed}"conversation_id":${JSON.stringify(conversation_id)},`
  return `{${approved}${whose}${failed}"id":${JSON.stringify(id)},"log_id":"${log_id}",`
}

function previous({ previous_hash }: Unsealed): string {
  return `"previous_hash":"${previous_hash}",`
}

function back({ result_hash, risk, sandbox, seq, status, timestamp, tool, v }: Unsealed): string {
  const confined = sandbox === undefined ? '' : `"sandbox":"${sandbox}",`
  const verdict = `"result_hash":"${result_hash}","risk":"${risk}",${confined}"seq":${seq},"status":"${status}"`
  return `${verdict},"timestamp":"${timestamp}","tool":${JSON.stringify(tool)},"v":${v}}`
}

/** The fields of a line that the chain needs. `content` is the computed hash, `own` the hash in the line. */
export type LinkText = {
  readonly logId: string
  readonly seq: number
  readonly previous: string
  readonly own: string
  readonly mac: string | undefined
  readonly content: string
}

const hash = '[0-9a-f]{64}'
/** Strings as RFC 8785 writes them: escapes only where required, in their shortest form. No lone surrogates. */
const text = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"`
const time = String.raw`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z`

/**
 * Matches exactly the canonical receipts, which is faster than parsing a line and serialising it again. The three named groups are hashed;
 * `mac` and `receipt_hash` between them are not.
 */
const source =
  `^(?<front>\\{(?:"approval":${text},)?"args_hash":"${hash}",(?<changes>"changes":"(?:none|direct|dropped|pending|${hash})",)?"conversation_id":${text},(?:"error":${text},)?"id":${text},` +
  `"log_id":"(?<logId>[0-9a-f]{32})",)(?:"mac":"(?<mac>${hash})",)?(?<middle>"previous_hash":"(?<previous>${hash})",)"receipt_hash":"(?<own>${hash})",` +
  `(?<back>"result_hash":"${hash}","risk":"(?:low|medium|high)",(?<sandbox>"sandbox":"(?:bubblewrap|landlock|none)",)?` +
  `"seq":(?<seq>[1-9][0-9]{0,14}),"status":"(?:allowed|denied|failed)","timestamp":"${time}","tool":${text},"v":(?<v>[123])\\})$`

/** Compiled on first use, because most starts read no line; the engine caches the result. */
const line = () => new RegExp(source)

/** Rejects fields that receipts of this version do not have: the sandbox is in all but version 1, the changes are in version 3. */
function parts(from: string): { readonly [name: string]: string | undefined } | undefined {
  const found = line().exec(from)?.groups
  if (found === undefined || (found.v === '1' && found.sandbox !== undefined)) return undefined
  return found.v !== '3' && found.changes !== undefined ? undefined : found
}

/** @returns undefined unless the line is a receipt in canonical form, byte for byte. */
export function readLink(from: string): LinkText | undefined {
  const found = parts(from)
  if (!found) return undefined
  const { front, logId = '', mac, middle, previous = '', own = '', back, seq } = found
  return { logId, seq: Number(seq), previous, own, mac, content: sha256(`${front}${middle}${back}`) }
}

/** Returns the receipt in a line without checking its hashes; undefined when it is not in canonical form. */
export function readReceipt(from: string): Receipt | undefined {
  return parts(from) ? JSON.parse(from) : undefined
}
