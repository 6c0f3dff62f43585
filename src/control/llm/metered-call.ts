/** Runs one call of a model that costs tokens, from the reservation to the settlement. */

import { HttpError, quiet } from '../../http/http-error.ts'
import type { Connection } from '../../http/listen.ts'
import { catalogueFacts } from '../../providers/wire/facts/model-facts.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { estimatedInput, tokensOf } from './estimate.ts'
import { type RunCaller, watchRun } from './lease-watch.ts'
import { type Reserved, reserveCall } from './meter.ts'
import type { PassThroughDeps } from './pass-through-deps.ts'
import { brokenResponse, type Relay, relayDocument, relayStream } from './relay.ts'
import { askUpstream, readText, redactorOf } from './upstream-call.ts'
import type { Upstream } from './upstreams.ts'
import { clientHeaders } from './vendor-request.ts'
import { assertCountable } from './wires/uncounted-input.ts'
import type { Asked, Fields, Seen, Wire } from './wires/wire.ts'

export type MeteredCall = {
  readonly deps: PassThroughDeps
  readonly request: Request
  readonly connection: Connection
  readonly upstream: Upstream
  readonly wire: Wire
  readonly path: string
  readonly text: string
  readonly body: Fields
  readonly caller: RunCaller
  readonly secret: string
}

/** The longest answer when the request names none: the reservation must bound what the call can cost. */
const usualOutput = 16_384
/** More than any model writes. */
const mostOutput = 1e8

export async function meteredCall(call: MeteredCall): Promise<Response> {
  const asked = call.wire.asked(call.body)
  assertCountable(call.body)
  const input = estimatedInput(call.body)
  const reserved = await reserve(call, asked, input)
  const ended = new AbortController()
  const stopped = AbortSignal.any([call.connection.gone, ended.signal])
  const unwatch = watchRun(call.deps, call.secret, (why) => ended.abort(why))
  const seen: Seen = { input: 0, output: 0, bytes: 0, whole: false, ended: false }
  const model = modelOf(call)
  const finish = async (tokens: number) => {
    unwatch()
    await reserved.settle(tokens, model)
  }
  const settle = () => finish(tokensOf(seen, { input, output: reserved.output }))
  const broke = (error: unknown) => call.deps.log('warn', 'llm.upstream', { vendor: call.wire.vendor, error: String(error) })
  const relay = { wire: call.wire, asked, seen, stopped, settle, redact: redactorOf(call.upstream), headers: {}, broke }
  try {
    const body = limitedBody(call, reserved.output / asked.answers)
    const answer = await askUpstream({ ...call, method: 'POST', body, signal: stopped })
    const headers = clientHeaders(answer.headers)
    if (!answer.ok) return await refused({ ...relay, headers }, answer, finish)
    return await pass({ ...relay, headers }, answer)
  } catch (error) {
    // Nobody knows whether a request that broke was worked on, unless it was never sent.
    await (isUnsent(error) ? finish(0) : settle())
    if (error instanceof HttpError || error instanceof PlaneRefusal) throw error
    return brokenResponse(relay, error)
  }
}

/** Whatever stands there is passed on; what is no name of a model is refused by the vendor. */
function modelOf({ body }: Pick<MeteredCall, 'body'>): string {
  return typeof body.model === 'string' ? body.model : ''
}

async function reserve({ deps, wire, body, caller, upstream, connection }: MeteredCall, asked: Asked, input: number): Promise<Reserved> {
  const model = modelOf({ body })
  const longest = asked.output ?? Math.min(usualOutput, (await catalogueFacts(upstream.baseUrl, model))?.maxOutputTokens ?? usualOutput)
  const failed = (error: unknown) => deps.log('warn', 'llm.settle', { run: caller.runId, error: String(error) })
  const charge = {
    caller,
    input,
    output: Math.min(longest * asked.answers, mostOutput),
    purpose: `${wire.path.slice(1)} ${model}`.slice(0, 200),
  }
  return await reserveCall({ budget: deps.plane.budget, sleep: deps.sleep, failed }, { ...charge, gone: connection.gone })
}

/** @throws PlaneRefusal budget_exceeded when the API takes no answer as short as the budget allows */
function limitedBody({ wire, body, upstream }: MeteredCall, output: number): string {
  const limited = wire.limited(body, Math.max(1, Math.floor(output)), upstream.baseUrl)
  if (limited) return JSON.stringify(limited)
  throw new PlaneRefusal('budget_exceeded', `the budget leaves ${Math.floor(output)} tokens for an answer: too few for this request`)
}

async function pass(relay: Relay, answer: Response): Promise<Response> {
  const isStream = /^text\/event-stream\b/i.test(answer.headers.get('content-type') ?? '')
  return isStream ? relayStream(relay, answer) : await relayDocument(relay, answer)
}

const maxErrorBytes = 65_536
/** Longer than a key, so that none is cut in two before it is looked for. */
const longestKey = 4_096

/** A request that the vendor refused costs nothing. */
async function refused(relay: Relay, answer: Response, finish: (tokens: number) => Promise<void>): Promise<Response> {
  const { text } = await readText(answer, maxErrorBytes + longestKey)
  await finish(0)
  return new Response(relay.redact(text).slice(0, maxErrorBytes), { status: answer.status, headers: { ...quiet, ...relay.headers } })
}

function isUnsent(error: unknown): boolean {
  if (error instanceof HttpError || error instanceof PlaneRefusal) return true
  return error instanceof Error && 'code' in error && ['ConnectionRefused', 'ECONNREFUSED', 'ENOTFOUND'].includes(String(error.code))
}
