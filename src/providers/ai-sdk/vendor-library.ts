/** Calls a vendor through its library: translates our request, serves as the library's fetch, and translates its parts back. */

import type { LanguageModelV4, LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { ProviderFailure } from '../../runtime/port.ts'
import { repairedPieces, type StreamRepair } from '../repair/repair.ts'
import type { Exchange, Talk } from '../wire/attempt.ts'
import { idMaker } from '../wire/call-arguments.ts'
import { cut } from '../wire/failure-of-response.ts'
import type { Body } from '../wire/reply-body.ts'
import { type Library, type LibraryKind, libraries } from './libraries.ts'
import { callOptions } from './library-prompt.ts'
import { type Assembly, startAssembly } from './library-reply.ts'
import { type Delta, mergeDeltas } from './merge-deltas.ts'

type Line = {
  readonly fetch: typeof globalThis.fetch
  /** The server answered with plain JSON instead of a stream; the next `fetch` returns this answer and sends nothing. */
  hasDocument(): boolean
}

export async function converseThrough(kind: LibraryKind, talk: Talk): Promise<Exchange> {
  const { name, config, deps, request, deadline, maxBytes } = talk
  const line = openLine(talk, libraries[kind])
  const library = await load(kind, talk, line)
  const model = request.model || config.model
  const assembly = startAssembly({ provider: name, model, maxBytes, newId: idMaker(request.messages), log: deps.log })
  const options = callOptions({ request, config, marks: libraries[kind].marks, signal: deadline.signal })
  const started = config.stream === false ? undefined : await orUndefined(library.doStream(options), line.hasDocument)
  if (started === undefined) return wholeAnswer(assembly, await library.doGenerate(options))
  return { next: readStream(assembly, started.stream), reply: assembly.result }
}

/** Explains a failed import: the libraries read the vendor's environment variables while they load, and fail on an empty base URL. */
async function load(kind: LibraryKind, { name, config, request, baseUrl }: Talk, line: Line): Promise<LanguageModelV4> {
  const model = request.model || config.model
  try {
    return await libraries[kind].model({ baseURL: baseUrl, apiKey: config.apiKey ?? '', model, fetch: line.fetch })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const hint = 'is OPENAI_BASE_URL or ANTHROPIC_BASE_URL set but empty?'
    throw new ProviderFailure('unknown', `provider "${name}" could not be loaded: ${cut(why)}; ${hint}`, { provider: name })
  }
}

function openLine({ name, config, wire }: Talk, library: Library): Line {
  const repair = library.repair()
  let document: unknown

  async function send(url: string, init: RequestInit): Promise<Response> {
    if (document !== undefined) return json(document)
    const answer = await wire.ask(url, init)
    if (answer.type === 'stream') {
      const { status, headers } = answer.head
      return new Response(streamOf(answer.body, repair, library.delta), { status, headers })
    }
    document = repair.repair.document(answer.value)
    if (config.stream === false) return json(document)
    throw new ProviderFailure('bad_response', `provider "${name}" answered with JSON instead of a stream`, { provider: name })
  }

  return {
    fetch: Object.assign((input: string | URL | Request, init?: RequestInit) => send(String(input), init ?? {}), { preconnect() {} }),
    hasDocument: () => document !== undefined,
  }
}

function streamOf(body: Body, repair: StreamRepair, delta: Delta): ReadableStream<Uint8Array> {
  const next = repairedPieces(body, repair)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await next()
        if (bytes === undefined) controller.close()
        else controller.enqueue(mergeDeltas(bytes, delta))
      },
      cancel: body.close,
    },
    { highWaterMark: 0 },
  )
}

function json(value: unknown): Response {
  return new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json' } })
}

/** Ignores the expected rejection of a complete answer where the library wanted a stream. */
async function orUndefined<T>(promise: PromiseLike<T>, expected: () => boolean): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (expected()) return undefined
    throw error
  }
}

function readStream(assembly: Assembly, stream: ReadableStream<LanguageModelV4StreamPart>): Exchange['next'] {
  const reader = stream.getReader()
  return async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const chunk = assembly.take(next.value)
      if (chunk !== undefined) return chunk
    }
    return undefined
  }
}

function wholeAnswer(assembly: Assembly, { content, response, finishReason, usage }: LanguageModelV4GenerateResult): Exchange {
  const chunks = content.flatMap((part) => assembly.takeWhole(part) ?? [])
  assembly.answeredBy(response?.modelId)
  assembly.finish(finishReason, usage)
  return { next: async () => chunks.shift(), reply: () => ({ ...assembly.result(), rawProviderPayload: response?.body }) }
}
