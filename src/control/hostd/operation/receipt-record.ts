/** Defines what a receipt of an attempt says. */

import type { JsonObject } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { HostdError, HostdRequest, Risk } from '../hostd-wire.ts'
import type { Peer } from '../peer.ts'
import type { Executed } from './execute.ts'

/** `details` are kept with the receipt, whose args_hash covers them. */
export type CallRecord = {
  readonly op: string
  readonly risk: Risk
  readonly outcome: 'done' | 'failed' | 'denied'
  readonly error?: string
  readonly details: JsonObject
}

/** @returns the id of the receipt. @throws when it cannot be written */
export type RecordCall = (record: CallRecord) => string

/** Who asked for what, before it is known what becomes of it. */
export function askedBy(
  peer: Peer,
  { op, params, caller, approval }: Pick<HostdRequest, 'op' | 'params' | 'caller' | 'approval'>,
): JsonObject {
  const { uid, gid, pid } = peer
  return {
    op,
    params: asJson(params),
    peer: { uid, gid, pid },
    ...(caller ? { caller } : {}),
    ...(approval ? { approval: asJson(approval) } : {}),
  }
}

export function deniedRecord(asked: JsonObject, risk: Risk, { code, message }: HostdError): CallRecord {
  const op = typeof asked.op === 'string' ? asked.op : 'unknown'
  return { op, risk, outcome: 'denied', error: `${code}: ${message}`, details: { ...asked, outcome: 'denied', code } }
}

/** A failure says how the program ended; its output is not in the receipt, only its digest. */
export function executedRecord(asked: JsonObject, operation: { readonly op: string; readonly risk: Risk }, how: Ended): CallRecord {
  const { executed, error, durationMs, call } = how
  const { output, truncated, code } = executed
  const facts = {
    exit_code: code,
    output_sha256: sha256(output),
    output_bytes: Buffer.byteLength(output),
    truncated,
    duration_ms: durationMs,
    call,
  }
  const outcome = error === undefined ? 'done' : 'failed'
  const details = { ...asked, outcome, ...(error ? { code: error.code } : {}), ...facts }
  return { op: operation.op, risk: operation.risk, outcome, details, ...(error ? { error: `${error.code}: ${error.message}` } : {}) }
}

export type Ended = {
  readonly executed: Executed
  readonly error: HostdError | undefined
  readonly durationMs: number
  readonly call: string
}

/** Parameters arrived as JSON; a text that has no bytes (a lone surrogate) is replaced, because a receipt hashes bytes. */
export function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value).toWellFormed(), (_, each: unknown) => (typeof each === 'string' ? each.toWellFormed() : each))
}
