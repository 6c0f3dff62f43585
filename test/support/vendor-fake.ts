/** Simulates the remote server on loopback, and provides what a provider needs in a test. It has no tests of its own. */

import { expect } from 'bun:test'
import { createWired } from '../../src/providers/http-provider.ts'
import type { CreateDeps } from '../../src/providers/provider-kind.ts'
import type { ProviderDeps, WireConfig, WireKind } from '../../src/providers/wire/provider-settings.ts'
import type { FailureCode } from '../../src/runtime/event.ts'
import { type ChatRequest, type ChatResponse, type Log, type ModelChunk, type Provider, ProviderFailure } from '../../src/runtime/port.ts'
import type { Dialect } from './dialects.ts'
import { unknownQuestion } from './window-questions.ts'

export type Asked = { readonly path: string; readonly headers: Headers; readonly text: string }

export type Fake = {
  readonly url: string
  readonly asked: Asked[]
  /** Resolves when the client closes a connection during an answer. */
  readonly hungUp: Promise<void>
  stop(): void
}

/**
 * A loopback server; `answer` is called for each request with its number, counted from 0, and for questions about the window of a model
 * only if `questions`.
 */
export function startFake(answer: (asked: Asked, n: number) => Response | Promise<Response>, { questions = false } = {}): Fake {
  const asked: Asked[] = []
  const { promise: hungUp, resolve } = Promise.withResolvers<void>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const unknown = questions ? undefined : unknownQuestion(request)
      if (unknown) return unknown
      request.signal.addEventListener('abort', () => resolve())
      const one = { path: new URL(request.url).pathname, headers: request.headers, text: await request.text() }
      asked.push(one)
      return answer(one, asked.length - 1)
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, asked, hungUp, stop: () => void server.stop(true) }
}

/** Starts a server that answers the first received bytes with these pieces and then breaks the connection, `afterMs` later. */
export function startCutter(pieces: readonly string[], afterMs = 0): Pick<Fake, 'url' | 'stop'> {
  const chunks = pieces.map((piece) => `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`)
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        socket.write(head + chunks.join(''))
        if (afterMs === 0) socket.end()
        else setTimeout(() => socket.end(), afterMs)
      },
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) }
}

/** Returns a response that sends these pieces one after the other; `hold` keeps the connection open after the last. */
export function sends(pieces: Iterable<string | Uint8Array>, end: 'close' | 'hold' = 'close', gapMs = 0): Response {
  const iterator = pieces[Symbol.iterator]()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = iterator.next()
      if (gapMs > 0) await Bun.sleep(gapMs)
      if (!next.done) controller.enqueue(typeof next.value === 'string' ? new TextEncoder().encode(next.value) : next.value)
      else if (end === 'close') controller.close()
      else await new Promise(() => {})
    },
  })
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}

export type LogLine = { readonly level: string; readonly event: string; readonly fields: Record<string, unknown> }

/** Uses the real clock and network, cuts waits to nothing, and keeps the log. */
export function testDeps(over: Partial<ProviderDeps> = {}): ProviderDeps & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const log: Log = (level, event, fields = {}) => void lines.push({ level, event, fields: { ...fields } })
  return { fetch: (url, init) => globalThis.fetch(url, init), log, sleep: realSleep, random: () => 0.5, now: Date.now, lines, ...over }
}

/** As testDeps, for providers of every kind; the key of each is `sk-test-key`. */
export function createDeps(over: Partial<CreateDeps> = {}): ReturnType<typeof testDeps> & CreateDeps {
  const unused = () => Promise.reject(new Error('nobody is asked here'))
  const deps = testDeps(over)
  return { ...deps, maxResponseBytes: 1_048_576, secret: () => 'sk-test-key', provider: unused, count: () => 1, brain: unused, ...over }
}

export function realSleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const stop = () => {
      clearTimeout(timer)
      resolve()
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}

export function wireConfig(kind: WireKind, baseUrl: string, over: Partial<WireConfig> = {}): WireConfig {
  return { kind, model: 'model-0', baseUrl, apiKey: 'sk-test-key', apiKeyEnv: 'TEST_KEY', maxRetries: 0, ...over }
}

const tool = (name: string) =>
  ({
    name,
    description: `The ${name} tool.`,
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  }) as const

export const question: ChatRequest = {
  systemPrompt: 'Be brief.',
  messages: [{ role: 'user', content: 'What is in a.txt?' }],
  tools: [tool('file_read'), tool('file_list')],
  model: '',
  metadata: { hint: 'secret-hint' },
}

export function providerAt(
  dialect: Dialect,
  fake: Pick<Fake, 'url'>,
  over: { config?: Partial<WireConfig>; deps?: Partial<ProviderDeps> } = {},
) {
  const deps = testDeps(over.deps)
  return { provider: createWired({ name: 'far', config: wireConfig(dialect.kind, fake.url, over.config), deps }), deps }
}

export async function ask(provider: Provider, request: ChatRequest = question): Promise<ChatResponse> {
  for await (const chunk of provider.chat(request, new AbortController().signal)) if (chunk.type === 'done') return chunk.response
  throw new Error('no done')
}

export type Outcome = {
  readonly shown: string
  readonly response?: ChatResponse
  readonly code?: FailureCode
  readonly failure?: ProviderFailure
}

/** Returns the shown text with the one `done` or the failure at its end; anything else is an error of the test. */
export async function outcomeOf(chunks: AsyncIterable<ModelChunk>): Promise<Outcome> {
  let shown = ''
  const dones: ChatResponse[] = []
  try {
    for await (const chunk of chunks) {
      if (chunk.type === 'text') shown += chunk.text
      if (chunk.type === 'done') dones.push(chunk.response)
    }
    expect(dones.length).toBe(1)
    return { shown, response: dones[0] }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    expect(dones.length).toBe(0)
    return { shown, code: error.code, failure: error }
  }
}

export type Served = (dialect: Dialect, ask: { readonly text: string }) => Response | Promise<Response>

/** Sends a request to a server that gives this answer to everything. */
export async function serve(dialect: Dialect, answer: Served, over: Partial<WireConfig> = {}): Promise<Outcome> {
  const fake = startFake((asked) => answer(dialect, asked))
  try {
    return await outcomeOf(providerAt(dialect, fake, { config: over }).provider.chat(question, new AbortController().signal))
  } finally {
    fake.stop()
  }
}

export const plain =
  (body: string, type: string, status = 200): Served =>
  () =>
    new Response(body, { status, headers: { 'content-type': type } })
