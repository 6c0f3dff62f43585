/** Defines a receipt: its fields, its canonical bytes, and its hash. */

import { sha256 } from '../../kit/sha256.ts'

export type ReceiptStatus = 'allowed' | 'denied' | 'failed'
export type ReceiptRisk = 'low' | 'medium' | 'high'
export type ReceiptSandbox = 'bubblewrap' | 'landlock' | 'none'

/**
 * `timestamp` is ISO 8601 in UTC; every hash is SHA-256 in lower-case hex. `args_hash` and `result_hash` cover canonical JSON.
 * `receipt_hash` covers the canonical JSON of all fields except itself and `mac`; `mac` is HMAC-SHA256(key, receipt_hash). `seq` counts
 * from 1 and continues across segments, as `previous_hash` does; the first receipt has sixty-four zeros there. `v` is 3; receipts of older
 * programs do not record the changes (versions 1 and 2) and the sandbox (version 1).
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
  readonly status: ReceiptStatus
  readonly risk: ReceiptRisk
  /** The person or rule that gave the required approval. */
  readonly approval?: string
  readonly error?: string
  /** The sandbox of the call's child processes; absent when it started none. With sandboxing switched off, every receipt says `none`. */
  readonly sandbox?: ReceiptSandbox
  /**
   * What became of the changes that the call made on a private view of the workspace: their digest when they were applied, else `none`,
   * `dropped`, or `pending` while they wait for a person; `direct` when it changed the workspace itself. Absent when it started no confined
   * child.
   */
  readonly changes?: string
  readonly previous_hash: string
  readonly receipt_hash: string
  readonly mac: string
}

export type Unsealed = Omit<Receipt, 'receipt_hash' | 'mac'>

export const genesis = '0'.repeat(64)

/** Returns the canonical JSON (RFC 8785) of the whole receipt: its line in the log, without the newline. Assembled by hand for speed. */
export function lineOf(receipt: Receipt): string {
  return `${front(receipt)}"mac":"${receipt.mac}",${previous(receipt)}"receipt_hash":"${receipt.receipt_hash}",${back(receipt)}`
}

export function macOf(key: Uint8Array, text: string): string {
  return new Bun.CryptoHasher('sha256', key).update(text).digest('hex')
}

/** Texts in `unsealed` must be well-formed: a lone surrogate has no bytes to hash. */
export function sealed(unsealed: Unsealed, key: Uint8Array): Receipt {
  const receipt_hash = sha256(front(unsealed) + previous(unsealed) + back(unsealed))
  return { ...unsealed, receipt_hash, mac: macOf(key, receipt_hash) }
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
