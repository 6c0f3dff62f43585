/** Passes requests of runners on to a model and counts their tokens: reserves before, settles after, refuses when the budget is spent. */

import { createRateLimit } from '../../http/callers.ts'
import { HttpError } from '../../http/http-error.ts'
import { readJsonBody } from '../../http/json-body.ts'
import type { Connection } from '../../http/listen.ts'
import type { RawAnswers } from '../../http/serve-api.ts'
import { atEnd, traceOf } from '../../kit/errors.ts'
import type { RunCaller } from '../contract/caller.ts'
import { assertRuns, type MeteredCall, meteredCall } from './metered-call.ts'
import { apiAnswer } from './relay.ts'
import {
  askUpstream,
  maxDocumentBytes,
  type PassThroughDeps,
  readText,
  redactorOf,
  runTokenOf,
  type Upstream,
  type Vendor,
} from './upstream-call.ts'
import { anthropicMessages, chatCompletions, errorAnswer, type Failure, failureOf, fieldsOf, openAiResponses, type Wire } from './wires.ts'

const llmPrefix = '/api/controlplane/llm/v1/'
const bodyLimits = { maxBytes: 16_777_216, maxDepth: 200, maxMs: 60_000 }
/** A runner may have helpers that ask at the same time. */
const maxCallsPerRun = 16
/** Limits wrong tokens from one address. */
const wrongTokens = { perSecond: 5, burst: 50 }

type Target = { readonly vendor: Vendor; readonly wire?: Wire; readonly path: string; readonly method: 'GET' | 'POST' }

export function createLlmPassThrough(deps: PassThroughDeps): RawAnswers {
  const running = new Map<string, number>()
  const wrong = createRateLimit({ ...wrongTokens, now: deps.now })

  async function answer(request: Request, connection: Connection): Promise<Response> {
    const target = targetOf(request)
    try {
      const secret = runTokenOf(request.headers)
      const caller = await assertRuns(deps, secret)
      return await withCallLimit(caller, () => passOn({ request, connection, target: assertKnown(target, request), caller, secret }))
    } catch (error) {
      return errorAnswer(target.vendor, limitWrongTokens(describeFailure(deps, error), connection))
    }
  }

  /** Slows down callers that try many tokens; a caller with a right one is never refused for that. */
  function limitWrongTokens(failure: Failure, { address }: Connection): Failure {
    const wait = failure.status === 401 ? wrong.take(address) : undefined
    if (wait === undefined) return failure
    return { status: 429, code: 'too_many', message: `too many wrong tokens; try again in ${wait} s`, retryAfterS: wait }
  }

  async function passOn({ request, connection, target, caller, secret }: RunnerRequest): Promise<Response> {
    const upstream = upstreamFor(deps, target.vendor)
    const text = target.method === 'POST' ? (await readJsonBody(request, bodyLimits)).text : ''
    connection.stay()
    const call = { deps, request, connection, upstream, path: target.path, text }
    if (!target.wire) return await unmeteredCall({ ...call, method: target.method, vendor: target.vendor })
    const metered: MeteredCall = { ...call, wire: target.wire, body: fieldsOf(JSON.parse(text)), caller, secret }
    return await meteredCall(metered)
  }

  /** Counts a call only until its answer begins: a stream uses no more than its connection. */
  async function withCallLimit<T>({ runId }: RunCaller, work: () => Promise<T>): Promise<T> {
    const count = running.get(runId) ?? 0
    if (count >= maxCallsPerRun) throw new HttpError(429, 'too_many', `${runId} asks ${count} models at once; wait for an answer`)
    running.set(runId, count + 1)
    using _end = atEnd(() => {
      const left = (running.get(runId) ?? 1) - 1
      if (left > 0) running.set(runId, left)
      else running.delete(runId)
    })
    return await work()
  }

  return { takes: (path) => path.startsWith(llmPrefix), answer }
}

type RunnerRequest = {
  readonly request: Request
  readonly connection: Connection
  readonly target: Target
  readonly caller: RunCaller
  readonly secret: string
}

function targetOf({ url, method, headers }: Request): Target {
  const path = new URL(url).pathname.slice(llmPrefix.length - 1)
  const wire = [chatCompletions, openAiResponses, anthropicMessages].find((one) => one.path === path)
  if (wire) return { vendor: wire.vendor, wire, path, method: 'POST' }
  if (path === '/messages/count_tokens') return { vendor: 'anthropic', path, method: 'POST' }
  const vendor = headers.has('anthropic-version') ? 'anthropic' : 'openai'
  return { vendor, path: /^\/models(?:\/[\w.:@-]{1,200}){0,3}$/.test(path) ? path : '', method: method === 'GET' ? 'GET' : 'POST' }
}

function assertKnown(target: Target, { method, url }: Request): Target {
  if (target.path === '' || method !== target.method)
    throw new HttpError(
      404,
      'not_found',
      `unknown route ${method} ${new URL(url).pathname}; the routes are POST chat/completions, responses, messages, messages/count_tokens and GET models`,
    )
  return target
}

function upstreamFor({ upstreams }: PassThroughDeps, vendor: Vendor): Upstream {
  const upstream = upstreams[vendor]
  if (upstream) return upstream
  const name = vendor.toUpperCase()
  throw new HttpError(
    503,
    'no_upstream',
    `the control plane has no ${vendor} API: its operator sets CONTROLPLANE_${name}_KEY, or CONTROLPLANE_${name}_URL, and starts it again`,
  )
}

/** Logs a bug, and hides its text from the caller. */
function describeFailure({ log }: PassThroughDeps, error: unknown): Failure {
  try {
    return failureOf(error)
  } catch (bug) {
    log('error', 'llm.failed', { error: traceOf(bug) })
    return { status: 500, code: 'internal', message: 'this is a bug in BraidClaw; its log says more' }
  }
}

type UnmeteredCall = Pick<MeteredCall, 'deps' | 'request' | 'connection' | 'upstream' | 'path' | 'text'> & {
  readonly method: 'GET' | 'POST'
  readonly vendor: Vendor
}

const longestMs = 60_000

async function unmeteredCall({ deps, request, connection, upstream, path, method, vendor, text }: UnmeteredCall): Promise<Response> {
  const signal = AbortSignal.any([connection.disconnected, AbortSignal.timeout(longestMs)])
  const answer = await askUpstream({ deps, request, upstream, path, method, body: text, signal }).catch((error: unknown) => {
    deps.log('warn', 'llm.upstream', { vendor, error: String(error) })
    return undefined
  })
  if (!answer) return errorAnswer(vendor, { status: 502, code: 'upstream_unreachable', message: `the ${vendor} API cannot be reached` })
  return apiAnswer(vendor, answer, redactorOf(upstream)((await readText(answer, maxDocumentBytes)).text))
}
