/** Provides a model over the network: one vendor's protocol with our timeouts, retries, limits, prices and failure codes. */

import type { FailureCode } from '../runtime/event.ts'
import { type ChatRequest, type ChatResponse, type ModelChunk, type Provider, ProviderFailure } from '../runtime/port.ts'
import { converse } from './chat/converse.ts'
import { type Cost, metered, promptTokens } from './metered.ts'
import { type Maker, sentMessages, signParts, withoutPictures } from './sent-messages.ts'
import { assertNoWrittenCall, assertUsable } from './usable-reply.ts'
import { unreadCutCall } from './wire/call-arguments.ts'
import { startDeadline } from './wire/deadline.ts'
import { type DialectRequest, type Exchange, openWire, type WireReply } from './wire/exchange.ts'
import { libraryFailure, ownFailure } from './wire/failure-of-response.ts'
import { baseUrlOf, defaults, effortOf, keyHint, type ProviderDeps, pricesOf, vendors, type WireConfig } from './wire/provider-settings.ts'
import { usageOf } from './wire/usage.ts'

type Setup = { readonly name: string; readonly config: WireConfig; readonly deps: ProviderDeps }

type WireAttempt = Setup & Pick<DialectRequest, 'request' | 'deadline' | 'quirks'>

/** An empty `request.model` selects the configured model. */
export function createWired(setup: Setup): Provider {
  const { name, config, deps } = setup
  const quirks = new Set<string>()
  return {
    name,
    capabilities: () => ({
      streaming: config.stream !== false,
      tools: true,
      thinking: true,
      contextTokens: config.contextTokens ?? vendors[config.kind].contextTokens,
      pictures: takesPictures(config),
    }),
    async *chat(request, signal) {
      const deadline = startDeadline({
        provider: name,
        signal,
        totalS: config.totalTimeoutS ?? defaults.totalTimeoutS,
        idleS: config.idleTimeoutS ?? defaults.idleTimeoutS,
        deps,
      })
      const { lane } = deps
      const ticket = lane?.ticket() ?? 0
      const attempt = (tries: number) => inTurn({ ...setup, request, deadline, quirks }, { ticket, tries })
      const maxRetries = config.maxRetries ?? defaults.maxRetries
      try {
        yield* withRetry({ provider: name, attempt, maxRetries, signal: deadline.signal, deps, together: lane !== undefined })
      } catch (error) {
        throw error instanceof ProviderFailure && error.code === 'bad_request' ? ((await deps.withModels?.(error)) ?? error) : error
      } finally {
        deadline.end()
      }
    },
  }
}

/** An unknown model is asked: its server refuses pictures, or takes them. */
function takesPictures({ kind, dialect, sees = ['image'] }: WireConfig): boolean {
  return kind !== 'plugin' && dialect === undefined && sees.includes('image')
}

function costOf({ name, config }: Setup): Cost {
  const { maxOutputTokens, longestAnswer, totalTimeoutS } = config
  return { provider: name, prices: pricesOf(config), free: false, maxOutputTokens, longestAnswer, longestS: totalTimeoutS }
}

/** Waits for its turn before it reserves a budget, so that a waiting call has reserved nothing. */
async function* inTurn(
  attempt: WireAttempt,
  { ticket, tries }: { readonly ticket: number; readonly tries: number },
): AsyncGenerator<ModelChunk> {
  const { name, config, deps, request, deadline } = attempt
  const pass = await deps.lane?.enter({
    provider: name,
    ticket,
    most: config.maxConcurrent ?? defaults.maxConcurrent,
    signal: deadline.signal,
    patienceMs: defaults.maxRetryWaitMs,
    onWait: ({ ahead, holdOffMs }) =>
      deps.log(holdOffMs > 0 ? 'warn' : 'info', 'provider waits', { provider: name, ahead, holdOffMs: Math.round(holdOffMs) }),
  })
  try {
    yield* metered(request, costOf(attempt), (paid) => attemptOnce({ ...attempt, request: paid, began: pass?.began }))
  } catch (error) {
    // Start the back-off before another call takes the free place.
    if (error instanceof ProviderFailure && concernsAll(error)) deps.lane?.holdOff(waitMs({ tries, failure: error, random: deps.random }))
    throw error
  } finally {
    pass?.leave()
  }
}

async function* attemptOnce(attempt: WireAttempt & { readonly began?: () => void }): AsyncGenerator<ModelChunk> {
  const { name, config, deps, request, deadline } = attempt
  const maxBytes = config.maxResponseBytes ?? defaults.maxResponseBytes
  const limits = { provider: name, deadline, maxBytes }
  const wire = openWire({ ...limits, fetch: deps.fetch, now: deps.now, streaming: config.stream !== false, keyHint: keyHint(config) })
  try {
    const baseUrl = usableBaseUrl(attempt)
    const maker = { provider: name, host: new URL(baseUrl).hostname, model: request.model || config.model }
    const sent = {
      ...withinRoom(attempt),
      messages: sentMessages(
        takesPictures(config) || request.metadata?.needs === 'pictures' ? request.messages : withoutPictures(request.messages),
        { ...maker, bindsPrefix: config.kind === 'anthropic' },
      ),
    }
    const { next, reply } = await begin({ ...attempt, request: sent, wire, maxBytes, baseUrl })
    attempt.began?.()
    for (let chunk = await next(); chunk !== undefined; chunk = await next()) yield chunk
    yield { type: 'done', response: await respond(attempt, maker, reply()) }
  } catch (error) {
    throw failureFor(error, attempt)
  } finally {
    wire.close()
  }
}

/** Lowers a limit with which prompt and answer would exceed the window. Anthropic's library always sends one: the model's longest answer. */
function withinRoom({ request, config }: WireAttempt): ChatRequest {
  const usual = config.kind === 'anthropic' ? (config.longestAnswer ?? 64_000) : undefined
  const limit = request.maxOutputTokens ?? config.maxOutputTokens ?? usual
  // An answer of less than 256 tokens says nothing; the server refuses a prompt that leaves less room.
  const room = limit === undefined ? undefined : request.answerRoom && Math.max(256, Math.floor(request.answerRoom()))
  return room !== undefined && room < Number(limit) ? { ...request, maxOutputTokens: room } : request
}

/** The openai-compatible protocol is our own code; the vendors' libraries are heavy and load only when needed. */
async function begin(talk: DialectRequest): Promise<Exchange> {
  const { kind } = talk.config
  if (kind === 'openai-compatible' || kind === 'plugin') return converse(talk)
  const { converseThrough } = await import('./ai-sdk/vendor-library.ts')
  return converseThrough(kind, talk)
}

async function respond({ name, config, deps, request }: WireAttempt, maker: Maker, reply: WireReply): Promise<ChatResponse> {
  const { stop, model, rawProviderPayload } = reply
  const { estimated, ...counted } = usageOf({
    reported: reply.usage,
    get sentTokens() {
      return promptTokens(request)
    },
    gotBytes: reply.bytes,
    prices: pricesOf(config),
  })
  const usage = { ...counted, ...(estimated ? { estimated } : {}) }
  if (estimated) deps.log('debug', 'provider usage estimated', { provider: name, ...usage })
  const read = stop === 'length' ? unreadCutCall(reply.parts) : reply.parts
  const hasCalls = read.some(({ type }) => type === 'call')
  const parts = hasCalls ? (await import('./wire/fit-calls.ts')).fitCalls(read, request.tools) : read
  const response = { parts: signParts(parts, maker), stop, usage, model, provider: name, rawProviderPayload }
  if (request.tools.length > 0) assertNoWrittenCall({ ...response, model: maker.model })
  return assertUsable(response)
}

function usableBaseUrl({ name, config }: WireAttempt): string {
  const base = baseUrlOf(config)
  const fail = (code: 'bad_request' | 'auth', message: string) => new ProviderFailure(code, message, { provider: name })
  if (base === undefined) throw fail('bad_request', `provider "${name}" needs a base_url, such as "http://localhost:1234/v1"`)
  if (!URL.canParse(base) || !isHttp(base)) throw fail('bad_request', `provider "${name}": base_url "${base}" is not an http(s) URL`)
  if (config.baseUrl === undefined && !config.apiKey && config.kind !== 'plugin')
    throw fail('auth', `provider "${name}" has no API key; ${keyHint(config)}`)
  return base
}

function isHttp(url: string): boolean {
  const lower = url.slice(0, 6).toLowerCase()
  return lower === 'https:' || lower.startsWith('http:')
}

/** A timeout or a cancel explains every later error, but a received status says more than a timeout. */
function failureFor(error: unknown, { name, config, request, deadline }: WireAttempt): ProviderFailure {
  const { code, message, detail } = libraryFailure(error, name)
  const model = request.model || config.model
  const effort = code === 'bad_request' && /effort|reasoning|thinking/i.test(message) ? effortOf(request, config) : undefined
  const isToolless = request.tools.length > 0 && noTools.test(message)
  const hint = effort
    ? `; effort = "${effort}" was sent: choose another level, or none at all (docs/models.md)`
    : isToolless
      ? `; to ask it without tools: braidclaw -m ${name}/${model} "…"; to see other models: braidclaw provider models ${name}`
      : ''
  const failure = new ProviderFailure(isToolless ? 'bad_request' : code, message + hint, { ...detail, model })
  const reason = deadline.signal.aborted ? ownFailure(deadline.signal.reason) : undefined
  return reason === undefined || (failure.detail.status !== undefined && reason.code === 'timeout') ? failure : reason
}

/** The words of servers whose model, or whose settings, take no tools. */
export const noTools =
  /\b(?:tools?|tool[ _](?:use|calls?|calling|choice)|function[ _]calling|functions?)\b.{0,30}(?:not|n't|un) ?(?:be )?(?:supported|available|enabled|allowed)|(?:not|n't) (?:support|accept|allow).{0,30}\b(?:tools?|functions?|tool_choice)\b|found that support tool|tools? param requires|enable-auto-tool-choice/i

type RetryOptions = {
  readonly provider: string
  /** @param tries the number of the attempt, from 1 */
  readonly attempt: (tries: number) => AsyncIterable<ModelChunk>
  readonly maxRetries: number
  readonly signal: AbortSignal
  readonly deps: Pick<ProviderDeps, 'log' | 'sleep' | 'random'>
  /** The next attempt itself waits after a failure that concerns all users of the same key. */
  readonly together?: boolean
}

/** Excludes `bad_response`, because the same server answers the same way again, unless it is the first part of a reply. */
const passing: ReadonlySet<FailureCode> = new Set(['rate_limit', 'network', 'server'])

/** After our own `timeout`, we have already waited; a timeout that the server reports (408, 504) may be temporary. */
function mayPass({ code, detail }: ProviderFailure): boolean {
  return passing.has(code) || detail.unfinished === true || (code === 'timeout' && detail.status !== undefined)
}

/** Too many requests, or an overloaded server: the next call would get the same answer. */
export function concernsAll({ code, detail }: ProviderFailure): boolean {
  return code === 'rate_limit' || detail.status === 503 || detail.status === 529
}

/**
 * Retries after a temporary failure, with jitter, a limit and a log entry, but never after part of an answer was shown.
 * @throws ProviderFailure the last failure, with the number of attempts in its message
 */
export async function* withRetry(options: RetryOptions): AsyncGenerator<ModelChunk> {
  const { provider, deps, signal } = options
  let waited = 0
  for (let tries = 1; ; tries++) {
    let shown = false
    try {
      for await (const chunk of options.attempt(tries)) {
        shown = true
        yield chunk
      }
      return
    } catch (error) {
      if (!(error instanceof ProviderFailure)) throw error
      const wait = waitMs({ tries, failure: error, random: deps.random })
      const again = !shown && mayPass(error) && tries <= options.maxRetries && waited + wait <= defaults.maxRetryWaitMs
      if (!again || signal.aborted) throw named(error, tries)
      waited += wait
      deps.log('warn', 'provider retry', { provider, attempt: tries, code: error.code, message: error.message, waitMs: Math.round(wait) })
      if (!(options.together && concernsAll(error))) await deps.sleep(wait, signal).catch(() => {})
      if (signal.aborted) throw signal.reason
    }
  }
}

/** 0.25–0.5 s, 0.5–1 s, 1–2 s, … up to 8 s. It waits the whole Retry-After and a little longer, so that not all calls return at once. */
export function waitMs(at: { tries: number; failure: ProviderFailure; random: () => number }): number {
  const { retryAfterMs } = at.failure.detail
  if (retryAfterMs !== undefined) return retryAfterMs + at.random() * 250
  return Math.min(8_000, 500 * 2 ** (at.tries - 1)) * (0.5 + at.random() / 2)
}

function named(failure: ProviderFailure, tries: number): ProviderFailure {
  return tries === 1 ? failure : new ProviderFailure(failure.code, `${failure.message} (after ${tries} attempts)`, failure.detail)
}
