/** A provider over the network: one vendor's wire with our clocks, retries, limits, prices and failure codes around it. */

import type { LanguageModelV4, LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { type ChatRequest, type ChatResponse, type ModelChunk, type Provider, ProviderFailure } from '../runtime/port.ts'
import { idMaker } from './arguments.ts'
import { type Assembly, startAssembly } from './assemble.ts'
import { type Deadline, startDeadline } from './deadline.ts'
import { cut, libraryFailure, ownFailure } from './failure.ts'
import { callOptions } from './prompt.ts'
import { withRetry } from './retry.ts'
import { defaults, type ProviderDeps, type WireConfig } from './settings.ts'
import { usageOf } from './usage.ts'
import { baseUrlOf, keyHint, vendors } from './vendors.ts'
import { openWire, type Wire } from './wire.ts'

type Setup = { readonly name: string; readonly config: WireConfig; readonly deps: ProviderDeps }

type Attempt = Setup & { readonly request: ChatRequest; readonly deadline: Deadline }

/** An empty `request.model` means the configured one. */
export function createWired(setup: Setup): Provider {
  const { name, config, deps } = setup
  return {
    name,
    capabilities: () => ({
      streaming: config.stream !== false,
      tools: true,
      thinking: true,
      contextTokens: config.contextTokens ?? vendors[config.kind].contextTokens,
    }),
    async *chat(request, signal) {
      const deadline = startDeadline({
        provider: name,
        signal,
        totalS: config.totalTimeoutS ?? defaults.totalTimeoutS,
        idleS: config.idleTimeoutS ?? defaults.idleTimeoutS,
        deps,
      })
      const attempt = () => attemptOnce({ ...setup, request, deadline })
      const maxRetries = config.maxRetries ?? defaults.maxRetries
      try {
        yield* withRetry({ provider: name, attempt, maxRetries, signal: deadline.signal, deps })
      } finally {
        deadline.end()
      }
    },
  }
}

async function* attemptOnce(attempt: Attempt): AsyncGenerator<ModelChunk> {
  const { name, config, deps, request, deadline } = attempt
  const maxBytes = config.maxResponseBytes ?? defaults.maxResponseBytes
  const streaming = config.stream !== false
  const common = { provider: name, deadline, maxBytes }
  const wire = openWire({
    ...common,
    fetch: deps.fetch,
    now: deps.now,
    streaming,
    delta: vendors[config.kind].delta,
    keyHint: keyHint(config),
  })
  const newId = idMaker(request.messages)
  const assembly = startAssembly({ provider: name, model: request.model || config.model, maxBytes, newId, log: deps.log })
  try {
    const rawProviderPayload = yield* converse({ attempt, wire, assembly })
    yield { type: 'done', response: { ...respond(attempt, assembly), rawProviderPayload } }
  } catch (error) {
    throw failureFor(error, attempt)
  } finally {
    wire.close()
  }
}

type Conversation = { readonly attempt: Attempt; readonly wire: Wire; readonly assembly: Assembly }

/** Returns the raw payload when the answer came whole. */
async function* converse(talk: Conversation): AsyncGenerator<ModelChunk, unknown> {
  const { attempt, wire } = talk
  const { config, request, deadline } = attempt
  const model = await load(attempt, wire)
  const options = callOptions({ request, config, marks: vendors[config.kind].marks, signal: deadline.signal })
  if (config.stream === false) return yield* takeWhole(talk, await model.doGenerate(options))
  const started = await orUndefined(model.doStream(options), wire.hasDocument)
  if (started === undefined) return yield* takeWhole(talk, await model.doGenerate(options))
  yield* takeStream(talk, started.stream)
  return undefined
}

/** The libraries read the vendor's environment variables while they load, and choke on an empty base URL there. */
async function load(attempt: Attempt, wire: Wire): Promise<LanguageModelV4> {
  const { name, config, request } = attempt
  const baseURL = usableBaseUrl(attempt)
  try {
    const model = request.model || config.model
    return await vendors[config.kind].model({ baseURL, apiKey: config.apiKey, model, fetch: wire.fetch })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const hint = 'is OPENAI_BASE_URL or ANTHROPIC_BASE_URL set but empty?'
    throw new ProviderFailure('unknown', `provider "${name}" could not be loaded: ${cut(why)}; ${hint}`, { provider: name })
  }
}

/** Swallows a rejection that only says "this is a whole answer, not a stream". */
async function orUndefined<T>(promise: PromiseLike<T>, expected: () => boolean): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (expected()) return undefined
    throw error
  }
}

async function* takeStream({ assembly }: Conversation, stream: ReadableStream<LanguageModelV4StreamPart>): AsyncGenerator<ModelChunk> {
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const chunk = assembly.take(next.value)
      if (chunk !== undefined) yield chunk
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function* takeWhole({ assembly }: Conversation, result: LanguageModelV4GenerateResult): Generator<ModelChunk, unknown> {
  for (const part of result.content) {
    const chunk = assembly.takeWhole(part)
    if (chunk !== undefined) yield chunk
  }
  assembly.answeredBy(result.response?.modelId)
  assembly.finish(result.finishReason, result.usage)
  return result.response?.body
}

function respond({ name, config, deps, request }: Attempt, assembly: Assembly): Omit<ChatResponse, 'rawProviderPayload'> {
  const { bytes, usage: reported, ...reply } = assembly.result()
  const sentBytes = Buffer.byteLength(JSON.stringify([request.systemPrompt, request.tools, request.messages]))
  const { estimated, ...usage } = usageOf({ reported, sentBytes, gotBytes: bytes, prices: config.prices })
  if (estimated) deps.log('debug', 'provider usage estimated', { provider: name, ...usage })
  return { ...reply, usage, provider: name }
}

function usableBaseUrl({ name, config }: Attempt): string {
  const base = baseUrlOf(config)
  const fail = (code: 'bad_request' | 'auth', message: string) => new ProviderFailure(code, message, { provider: name })
  if (base === undefined) throw fail('bad_request', `provider "${name}" needs a base_url, such as "http://localhost:1234/v1"`)
  if (!URL.canParse(base) || !/^https?:/i.test(base)) throw fail('bad_request', `provider "${name}": base_url "${base}" is no http(s) URL`)
  if (config.baseUrl === undefined && !config.apiKey) throw fail('auth', `provider "${name}" has no API key; ${keyHint(config)}`)
  return base
}

/** A clock or a cancel explains everything that broke after it, save that a status which did arrive says more than a clock. */
function failureFor(error: unknown, { name, deadline }: Attempt): ProviderFailure {
  const failure = libraryFailure(error, name)
  const reason = deadline.signal.aborted ? ownFailure(deadline.signal.reason) : undefined
  return reason === undefined || (failure.detail.status !== undefined && reason.code === 'timeout') ? failure : reason
}
