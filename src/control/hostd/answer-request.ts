/** Answers one line of a peer: decides, notes the intent, runs the program, writes the receipt. Every attempt ends in one receipt. */

import { depthOf } from '../../http/json-body.ts'
import { errorText } from '../../kit/errors.ts'
import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { bindParams, type ResolvePath } from './catalogue/bind.ts'
import type { Catalogue, Operation } from './catalogue/operation.ts'
import { type Machine, rowOf, whyUnavailable } from './catalogue/read-catalogue.ts'
import type { Execution, ExecutionResult, Intents } from './execute.ts'
import {
  type HostdError,
  type HostdReply,
  type HostdRequest,
  hostdRequest,
  listOperation,
  longestRequest,
  type Risk,
} from './hostd-wire.ts'
import type { createApprovalCheck } from './may-call.ts'
import { mayApprove, type Peer } from './may-call.ts'

export type RequestOptions = {
  readonly catalogue: Catalogue
  readonly machine: Machine
  readonly record: RecordCall
  readonly prove: () => void
  readonly intents: Intents
  readonly checkApproval: ReturnType<typeof createApprovalCheck>
  readonly rateOf: (uid: number) => Rate
  readonly execute: (execution: Pick<Execution, 'call' | 'argv' | 'env' | 'timeoutMs' | 'outputBytes'>) => Promise<ExecutionResult>
  readonly resolvePath: ResolvePath
  readonly newCall: () => string
  readonly now: () => number
  readonly warn: (message: string) => void
}

type RequestVerdict =
  | { readonly ok: true; readonly operation: Operation; readonly argv: readonly string[] }
  | { readonly ok: false; readonly error: HostdError }
type RunningCount = { count: number }

/** The function never rejects. */
export function createAnswer(
  options: RequestOptions,
): (peer: Peer, line: { readonly ok: boolean; readonly text: string }) => Promise<string> {
  const { catalogue, machine } = options
  const running: RunningCount = { count: 0 }
  return async (peer, line) => {
    const parsed = parseRequest(line)
    const rate = options.rateOf(peer.uid)
    if (rate !== 'within') return refuseForRate(options, { peer, request: parsed.request, rate })
    if (!parsed.ok) return refuse(options, { peer, request: parsed.request, error: parsed.error })
    const { request } = parsed
    if (request.op === listOperation && isTokenRight(options, request))
      return replyLine(request, { ok: true, output: JSON.stringify(catalogue.operations.map((row) => rowOf(row, machine))), exitCode: 0 })
    const verdict = decide(options, { peer, request, running })
    if (!verdict.ok) return refuse(options, { peer, request, error: verdict.error })
    if (request.check) return replyLine(request, { ok: true, output: '', exitCode: null })
    return carryOut(options, { peer, request, running, ...verdict })
  }
}

type DecisionInput = { readonly peer: Peer; readonly request: HostdRequest; readonly running: RunningCount }

/** Checks in an order in which a caller with fewer rights learns less. */
function decide(options: RequestOptions, { peer, request, running }: DecisionInput): RequestVerdict {
  const { catalogue, machine } = options
  if (!isTokenRight(options, request)) return denied('forbidden', 'the token is missing or wrong')
  const operation = catalogue.operations.find(({ op }) => op === request.op)
  if (!operation) return denied('unknown_op', `unknown operation ${JSON.stringify(request.op)}; "${listOperation}" lists them`)
  const unavailable = whyUnavailable(operation, machine)
  if (unavailable !== undefined) return denied('unavailable', `"${operation.op}" is not available here: ${unavailable}`)
  const bound = bindParams(operation, request.params, options.resolvePath)
  if (!bound.ok) return denied('bad_params', bound.problems.join('; '))
  if (request.check) return { ok: true, operation, argv: bound.argv }
  if (running.count >= catalogue.server.concurrent) return denied('too_many', `${running.count} operations are running; try again`)
  const error = approvalError(options, { peer, request, operation })
  return error ? { ok: false, error } : { ok: true, operation, argv: bound.argv }
}

function denied(code: HostdError['code'], message: string): RequestVerdict {
  return { ok: false, error: { code, message } }
}

function isTokenRight({ catalogue }: RequestOptions, { token = '' }: HostdRequest): boolean {
  const expected = catalogue.server.tokenSha256
  if (expected === undefined) return true
  const actual = new Bun.CryptoHasher('sha256').update(token).digest()
  return crypto.timingSafeEqual(actual, Buffer.from(expected, 'hex'))
}

/** Checks the approval last, because it counts as used afterwards. */
function approvalError(
  options: RequestOptions,
  { peer, request, operation }: Omit<DecisionInput, 'running'> & { readonly operation: Operation },
): HostdError | undefined {
  const { approval: proof, op, params } = request
  if (!proof)
    return operation.approval
      ? { code: 'approval_required', message: `"${op}" needs an approval of an operator, through the control plane` }
      : undefined
  const isControl = mayApprove(peer, options.catalogue.server, options.machine.uid)
  const checked = options.checkApproval({ proof, op, params: asJson(params), isControl })
  return checked.ok ? undefined : { code: 'approval_refused', message: checked.message }
}

type ApprovedCall = DecisionInput & Extract<RequestVerdict, { ok: true }>

async function carryOut(options: RequestOptions, { peer, request, running, operation, argv }: ApprovedCall): Promise<string> {
  const call = options.newCall()
  const asked = askedBy(peer, request)
  const begun = begin(options, { call, op: operation.op, details: asked })
  if (begun) return refuse(options, { peer, request, error: begun })
  const startedAt = options.now()
  running.count += 1
  const result = await options.execute({ call, argv, ...operation }).finally(() => {
    running.count -= 1
  })
  const error = errorOf(operation, result)
  const record = executedRecord(asked, operation, { result, error, durationMs: options.now() - startedAt, call })
  const { output, code: exitCode, truncated } = result
  const receipt = writeReceipt(options, record)
  // Without a receipt the note of the call stays, and the next start records it.
  if (receipt !== undefined) options.intents.end(call)
  const unwritten: HostdError = {
    code: 'no_receipt',
    message: 'the operation ended, but its receipt could not be written; see the log of hostd',
  }
  const outcome = receipt === undefined ? { ok: false, error: unwritten } : { ok: error === undefined, receipt, error }
  return replyLine(request, { output, exitCode, truncated: truncated || undefined, ...outcome })
}

function begin(
  { intents, prove, warn }: RequestOptions,
  intent: { readonly call: string; readonly op: string; readonly details: JsonObject },
): HostdError | undefined {
  try {
    prove()
    intents.begin(intent)
  } catch (error) {
    warn(`${intent.op}: refused, because its intent or its receipt cannot be written: ${errorText(error)}`)
    return { code: 'no_receipt', message: 'hostd cannot write its records, so it runs nothing; see its log' }
  }
}

function errorOf({ op, timeoutMs, doneCodes }: Operation, { ending, code, signal, message }: ExecutionResult): HostdError | undefined {
  if (ending === 'timeout') return { code: 'timeout', message: `"${op}" did not end within ${timeoutMs / 1_000} s and was killed` }
  if (ending === 'stopped') return { code: 'stopped', message: `hostd stopped, and "${op}" was killed` }
  if (ending === 'not_started') return { code: 'failed', message: `"${op}" did not start: ${message}` }
  if (code === 0 || (code !== null && doneCodes.includes(code))) return undefined
  return { code: 'failed', message: code === null ? `"${op}" was ended by ${signal}` : `"${op}" ended with exit code ${code}` }
}

function refuse(options: RequestOptions, { peer, request, error }: { peer: Peer; request: HostdRequest; error: HostdError }): string {
  const risk = options.catalogue.operations.find(({ op }) => op === request.op)?.risk ?? 'low'
  const receipt = writeReceipt(options, deniedRecord(askedBy(peer, request), risk, error))
  return replyLine(request, { ok: false, output: '', exitCode: null, receipt, error })
}

/** Refuses with one receipt a minute, so that many requests do not fill the disk with receipts. */
function refuseForRate(options: RequestOptions, { peer, request, rate }: { peer: Peer; request: HostdRequest; rate: Rate }): string {
  const error: HostdError = { code: 'too_many', message: `more than ${options.catalogue.server.perMinute} requests in a minute; wait` }
  return rate === 'over' ? refuse(options, { peer, request, error }) : replyLine(request, { ok: false, output: '', exitCode: null, error })
}

function writeReceipt({ record, warn }: RequestOptions, what: Parameters<RecordCall>[0]): string | undefined {
  try {
    return record(what)
  } catch (error) {
    warn(`${what.op}: no receipt could be written: ${errorText(error)}`)
    return undefined
  }
}

/** Writes the keys in the order of the protocol. */
function replyLine({ id }: HostdRequest, { ok, output, exitCode, truncated, receipt, error }: Omit<HostdReply, 'id'>): string {
  return JSON.stringify({ id, ok, output, exitCode, truncated, receipt, error })
}

/** A line that is not a request is answered too: with the id that it names, if any. */
type ParsedRequest =
  | { readonly ok: true; readonly request: HostdRequest }
  | { readonly ok: false; readonly request: HostdRequest; readonly error: HostdError }

function parseRequest({ ok, text }: { readonly ok: boolean; readonly text: string }): ParsedRequest {
  if (!ok) return { ok, request: blank(text), error: { code: 'too_large', message: `the line is longer than ${longestRequest} bytes` } }
  if (depthOf(text, deepest) > deepest)
    return { ok: false, request: blank(text), error: { code: 'bad_request', message: `the line is nested deeper than ${deepest} levels` } }
  const value = parseJson(text)
  const found = hostdRequest.safeParse(value)
  if (found.success) return { ok: true, request: found.data }
  const message =
    value === undefined ? 'the line is not JSON' : `the line is not a request: ${found.error.issues.map(describeIssue).join('; ')}`
  return { ok: false, request: { ...blank(text), id: idIn(value) }, error: { code: 'bad_request', message } }
}

/** Limits the depth, because writing, hashing and recording a request are recursive. */
const deepest = 80

/** Returns a request for a line that is not one; its receipt shows the beginning of the line. */
function blank(text: string): HostdRequest {
  return { id: '', op: 'unknown', params: { line: text.slice(0, 200) } }
}

function idIn(value: unknown): string | number {
  const id = isObject(value) ? value.id : ''
  return (typeof id === 'string' && id.length <= 64) || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : ''
}

function describeIssue({ path, message }: { readonly path: readonly PropertyKey[]; readonly message: string }): string {
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}

/** `over` is the first request above the limit; `silent` are those after it, which leave no receipt. */
export type Rate = 'within' | 'over' | 'silent'

/** Counts the requests of each user in the current minute; there are few users. */
export function createRequestRate(perMinute: number, now: () => number): (uid: number) => Rate {
  const state = { minute: 0, counts: new Map<number, number>() }
  return (uid) => {
    const minute = Math.floor(now() / 60_000)
    if (minute !== state.minute) Object.assign(state, { minute, counts: new Map<number, number>() })
    const count = (state.counts.get(uid) ?? 0) + 1
    state.counts.set(uid, count)
    if (count <= perMinute) return 'within'
    return count === perMinute + 1 ? 'over' : 'silent'
  }
}

/** `details` are stored with the receipt, whose args_hash covers them. */
export type CallRecord = {
  readonly op: string
  readonly risk: Risk
  readonly outcome: 'done' | 'failed' | 'denied'
  readonly error?: string
  readonly details: JsonObject
}

/** @returns the id of the receipt. @throws when it cannot be written */
export type RecordCall = (record: CallRecord) => string

/** Returns the part of a receipt that says who asked for what, without the result. */
function askedBy(peer: Peer, { op, params, caller, approval }: Pick<HostdRequest, 'op' | 'params' | 'caller' | 'approval'>): JsonObject {
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

/** Returns the record of a call that ran. It has the digest of the output, and not the output. */
function executedRecord(asked: JsonObject, operation: { readonly op: string; readonly risk: Risk }, how: ExecutionFacts): CallRecord {
  const { result, error, durationMs, call } = how
  const { output, truncated, code } = result
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
  return { op: operation.op, risk: operation.risk, outcome, details, error: error && `${error.code}: ${error.message}` }
}

type ExecutionFacts = {
  readonly result: ExecutionResult
  readonly error: HostdError | undefined
  readonly durationMs: number
  readonly call: string
}

/** Replaces lone surrogates in JSON, because a receipt hashes bytes and they have none. */
function asJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value).toWellFormed(), (_, each: unknown) => (typeof each === 'string' ? each.toWellFormed() : each))
}
