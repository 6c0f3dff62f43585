/** Runs one call of a model that costs tokens, from the reservation to the settlement. */

import { HttpError } from '../../http/http-error.ts'
import type { Connection } from '../../http/listen.ts'
import { errnoOf } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { catalogueFacts } from '../../providers/wire/facts/model-facts.ts'
import type { Caller, RunCaller } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import { isPassing, PlaneRefusal, whileOthersHold } from '../contract/plane-refusal.ts'
import { apiAnswer, brokenResponse, type Relay, relayDocument, relayStream } from './relay.ts'
import { askUpstream, clientHeaders, type PassThroughDeps, readText, redactorOf, type Upstream } from './upstream-call.ts'
import { fieldsOf, type JsonFields, type RequestFacts, type Tally, type Wire } from './wires.ts'

export type MeteredCall = {
  readonly deps: PassThroughDeps
  readonly request: Request
  readonly connection: Connection
  readonly upstream: Upstream
  readonly wire: Wire
  readonly path: string
  readonly text: string
  readonly body: JsonFields
  readonly caller: RunCaller
  readonly secret: string
}

/** The longest answer when the request sets no limit: the reservation must bound the cost of the call. */
const usualOutput = 16_384
/** No model writes this many tokens. */
const mostOutput = 1e8

export async function meteredCall(call: MeteredCall): Promise<Response> {
  const facts = call.wire.factsOf(call.body)
  assertCountable(call.body)
  const input = estimatedInput(call.body)
  const reserved = await reserveFor(call, facts, input)
  const ended = new AbortController()
  const stopped = AbortSignal.any([call.connection.disconnected, ended.signal])
  const unwatch = watchRun(call.deps, call.secret, (why) => ended.abort(why))
  const tally: Tally = { input: 0, output: 0, bytes: 0, whole: false, ended: false }
  const model = modelOf(call)
  const finish = async (tokens: number) => {
    unwatch()
    await reserved.settle(tokens, model)
  }
  const settle = () => finish(tokensOf(tally, { input, output: reserved.output }))
  const broke = (error: unknown) => call.deps.log('warn', 'llm.upstream', { vendor: call.wire.vendor, error: String(error) })
  const relay = { wire: call.wire, facts, tally, stopped, settle, redact: redactorOf(call.upstream), headers: {}, broke }
  try {
    const body = limitedBody(call, reserved.output / facts.answers)
    const answer = await askUpstream({ ...call, method: 'POST', body, signal: stopped })
    if (!answer.ok) return await refused(relay, answer, finish)
    const relayed = { ...relay, headers: clientHeaders(answer.headers) }
    const isStream = /^text\/event-stream\b/i.test(answer.headers.get('content-type') ?? '')
    return isStream ? relayStream(relayed, answer) : await relayDocument(relayed, answer)
  } catch (error) {
    // The vendor may have worked on a request that broke, unless it was never sent.
    await (isUnsent(error) ? finish(0) : settle())
    if (error instanceof HttpError || error instanceof PlaneRefusal) throw error
    return brokenResponse(relay, error)
  }
}

/** Passes on any text; the vendor refuses what is not a model. */
function modelOf({ body }: Pick<MeteredCall, 'body'>): string {
  return typeof body.model === 'string' ? body.model : ''
}

async function reserveFor(
  { deps, wire, body, caller, upstream, connection }: MeteredCall,
  facts: RequestFacts,
  input: number,
): Promise<CallReservation> {
  const model = modelOf({ body })
  const longest = facts.output ?? Math.min(usualOutput, (await catalogueFacts(upstream.baseUrl, model))?.maxOutputTokens ?? usualOutput)
  const failed = (error: unknown) => deps.log('warn', 'llm.settle', { run: caller.runId, error: String(error) })
  const charge = {
    caller,
    input,
    output: Math.min(longest * facts.answers, mostOutput),
    purpose: `${wire.path.slice(1)} ${model}`.slice(0, 200),
  }
  return await reserveCall({ budget: deps.plane.budget, sleep: deps.sleep, failed }, { ...charge, disconnected: connection.disconnected })
}

/** @throws PlaneRefusal budget_exceeded when the API refuses an answer as short as the budget allows */
function limitedBody({ wire, body, upstream }: MeteredCall, output: number): string {
  const limited = wire.limited(body, Math.max(1, Math.floor(output)), upstream.baseUrl)
  if (limited) return JSON.stringify(limited)
  throw new PlaneRefusal('budget_exceeded', `the budget leaves ${Math.floor(output)} tokens for an answer: too few for this request`)
}

const maxErrorBytes = 65_536
/** Longer than a key, so that a key is not cut in two before the search for it. */
const longestKey = 4_096

/** Passes on a refusal of the vendor, which costs nothing. */
async function refused(relay: Relay, answer: Response, finish: (tokens: number) => Promise<void>): Promise<Response> {
  const { text } = await readText(answer, maxErrorBytes + longestKey)
  await finish(0)
  return apiAnswer(relay.wire.vendor, answer, relay.redact(text).slice(0, maxErrorBytes))
}

function isUnsent(error: unknown): boolean {
  if (error instanceof HttpError || error instanceof PlaneRefusal) return true
  return ['ConnectionRefused', 'ECONNREFUSED', 'ENOTFOUND'].includes(errnoOf(error) ?? '')
}

type Charge = {
  readonly caller: Caller
  /** Estimates the tokens of the request itself. */
  readonly input: number
  /** Limits the tokens of the answer. */
  readonly output: number
  readonly purpose: string
  readonly disconnected: AbortSignal
}

type CallReservation = {
  /** Limits the length of the answer. */
  readonly output: number
  /** Reports the true cost; a second call does nothing. Never rejects: what is not settled counts as spent when the run ends. */
  settle(tokens: number, model: string): Promise<void>
}

type MeterDeps = {
  readonly budget: Pick<Plane['budget'], 'remaining' | 'reserve' | 'settle'>
  readonly sleep: (ms: number) => Promise<void>
  readonly failed: (error: unknown) => void
}

/** A shorter answer would be useless. */
const shortestAnswer = 256
/** A call takes everything when at most this much is left; with more it leaves half to other calls. */
const little = 4_096

/** Waits some seconds while other calls hold the tokens that this one needs. @throws PlaneRefusal budget_exceeded when too little is left */
async function reserveCall(deps: MeterDeps, charge: Charge): Promise<CallReservation> {
  // A refused reservation ends the run, so the call first asks how much is left.
  const reserveOnce = async () => reserve(deps, charge, outputFor(charge, await deps.budget.remaining(charge.caller)))
  return await whileOthersHold(reserveOnce, { sleep: deps.sleep, isOver: () => charge.disconnected.aborted })
}

function outputFor({ input, output }: Charge, left: number | null): number {
  const rest = left === null ? output : left - input
  if (rest >= output) return output
  return Math.max(rest <= little ? rest : Math.max(little, Math.floor(rest / 2)), Math.min(shortestAnswer, output))
}

async function reserve({ budget, failed }: MeterDeps, { caller, input, purpose }: Charge, output: number): Promise<CallReservation> {
  const { reservation_id } = await budget.reserve(caller, { tokens: input + output, purpose })
  const state = { settled: false }
  return {
    output,
    async settle(tokens, model) {
      if (state.settled) return
      state.settled = true
      await budget.settle(caller, { reservation_id, tokens, model: model.slice(0, 200) }).then(() => {}, failed)
    },
  }
}

/** JSON and code have more tokens a byte than prose, which has one in four. */
const bytesPerInputToken = 3.5
const bytesPerOutputToken = 3
/** A picture costs by its size on the screen, not by its bytes. */
const tokensPerImage = 2_500
/** A vendor that reports more is wrong. */
const mostTokens = 1e9
const imageTypes: readonly unknown[] = ['image', 'image_url', 'input_image']

/** Estimates rather too many than too few. @param body the parsed request */
function estimatedInput(body: unknown): number {
  const images = { count: 0, bytes: 0 }
  countImages(body, images)
  const bytes = Buffer.byteLength(JSON.stringify(body)) - images.bytes
  return Math.ceil(bytes / bytesPerInputToken) + images.count * tokensPerImage
}

function countImages(value: unknown, images: { count: number; bytes: number }): void {
  if (Array.isArray(value)) for (const item of value) countImages(item, images)
  if (!isObject(value)) return
  const data = imageTypes.includes(value.type) ? pictureOf(value) : undefined
  if (typeof data === 'string') {
    images.count += 1
    images.bytes += Buffer.byteLength(data)
  } else for (const field of Object.values(value)) countImages(field, images)
}

/** Returns the picture itself, in base64, as an address or by its name at the vendor; everything beside it is text. */
function pictureOf({ image_url, source, file_id }: JsonFields): unknown {
  const { data, url, file_id: named } = fieldsOf(source)
  return typeof image_url === 'string' ? image_url : (fieldsOf(image_url).url ?? data ?? url ?? named ?? file_id)
}

/**
 * Computes the cost of a call: the vendor's count when it is final; what the answer showed when it ended without one. Otherwise nobody knows
 * what the vendor wrote, or thought without showing it, so all that was reserved counts.
 */
function tokensOf(tally: Tally, reserved: { readonly input: number; readonly output: number }): number {
  const counted = tally.input + tally.output
  const output = Math.max(tally.output, Math.ceil(tally.bytes / bytesPerOutputToken), tally.ended ? 0 : reserved.output)
  const atLeast = Math.max(tally.input, reserved.input) + output
  return Math.min(tally.whole && counted > 0 ? counted : atLeast, mostTokens)
}

/** @throws HttpError 400 for a document that the request only names */
function assertCountable(value: unknown): void {
  if (Array.isArray(value)) for (const item of value) assertCountable(item)
  if (!isObject(value)) return
  const name = nameOfDocument(value)
  if (name !== undefined)
    throw new HttpError(400, 'unsupported_parameter', `${name}: the document would be input that is not in the request; send its content`)
  for (const field of Object.values(value)) assertCountable(field)
}

/** Finds a document that is not in the request. A picture costs about the same wherever it comes from; a document may have a million tokens. */
function nameOfDocument(part: JsonFields): string | undefined {
  const { type, source, file } = part
  if (type === 'file' && isText(fieldsOf(file).file_id)) return 'file_id'
  if (type === 'input_file') return ['file_id', 'file_url'].find((name) => isText(part[name]))
  if (type === 'container_upload') return 'container_upload'
  const from = fieldsOf(source).type
  return type === 'document' && (from === 'file' || from === 'url') ? `source.type ${JSON.stringify(from)}` : undefined
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

type WatchDeps = Pick<PassThroughDeps, 'plane' | 'sleep'>

const checkEveryMs = 400
/** A call ends when the control plane cannot answer for this long. */
const blindMs = 10_000

/** Finds the run of a token. @throws PlaneRefusal when the run may not continue */
export async function assertRuns({ plane }: WatchDeps, secret: string): Promise<RunCaller> {
  const caller = await plane.access.callerOf(secret)
  if (!caller) throw new PlaneRefusal('unauthorized', 'this token is not in force: its lease has ended, or its key was revoked')
  if (caller.kind !== 'run')
    throw new PlaneRefusal('forbidden', 'only the token of a run may ask a model, so that the budget of its task counts it')
  const task = await plane.tasks.get(caller, caller.taskId)
  if (task.cancel_requested) throw new PlaneRefusal('conflict', `${task.task_id} is cancelled; stop and release it`)
  if (task.status === 'budget_blocked') throw new PlaneRefusal('budget_exceeded', `${task.task_id} waits: its budget is used up`)
  if (task.status !== 'running' || task.run_id !== caller.runId)
    throw new PlaneRefusal('lease_lost', `${caller.runId} no longer holds ${task.task_id}`)
  return caller
}

/** Checks while a model answers whether the run may continue, and calls `stop` once with the reason when it may not. @returns a function that ends the watch */
function watchRun(deps: WatchDeps, secret: string, stop: (why: unknown) => void): () => void {
  const state = { over: false, blindSince: 0 }

  async function check(): Promise<void> {
    try {
      await assertRuns(deps, secret)
      state.blindSince = 0
    } catch (error) {
      if (!isPassing(error)) return end(error)
      state.blindSince += checkEveryMs
      if (state.blindSince >= blindMs) end(new PlaneRefusal('unavailable', 'the control plane cannot check whether this run may continue'))
    }
  }

  function end(why: unknown): void {
    if (!state.over) stop(why)
    state.over = true
  }

  async function follow(): Promise<void> {
    while (!state.over) {
      await deps.sleep(checkEveryMs)
      if (!state.over) await check()
    }
  }

  void follow()
  return () => {
    state.over = true
  }
}
