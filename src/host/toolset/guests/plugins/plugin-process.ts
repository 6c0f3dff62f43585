/**
 * Keeps the process of one plugin and calls it over lines of JSON-RPC 2.0, one call at a time. Whatever is neither an answer to the open
 * call nor a message of a channel ends the process; the next call starts another one, later and later while none answers.
 */

import { within } from '../../../../kit/abort.ts'
import { createCollector } from '../../../../kit/content/output-limit.ts'
import { canonical, isJsonObject, isObject, type JsonObject, parseJson } from '../../../../kit/json.ts'
import { quote } from '../../../../kit/text.ts'
import type { ToolResult } from '../../../../runtime/port.ts'
import { startLineProcess } from '../../../../sandbox/pipes/line-process.ts'
import { resultOf } from '../../../../tools/executable/executable-tool.ts'
import type { Spawn, SpawnPlan } from '../../../../tools/process.ts'
import { fail } from '../../../../tools/tool-kind.ts'
import type { PluginManifest } from './manifest.ts'

const protocol = 1
/** The times in which it must greet, say that it is well, and end a cancelled call. */
const [helloMs, healthMs, cancelMs] = [5_000, 2_000, 1_000]
/** It is asked for its health after this time without a call, and ended after the longer one. */
const [restMs, idleMs] = [30_000, 300_000]
const longestBackOffMs = 60_000

export type ProcessOptions = {
  readonly manifest: PluginManifest
  readonly spawn: Spawn
  readonly plan: Pick<SpawnPlan, 'argv' | 'cwd' | 'env' | 'readablePaths'>
  readonly maxOutputBytes: number
  /** Aborts when what the process runs for is closed. */
  readonly closed: AbortSignal
  readonly now?: () => number
  /** Takes a `message` of a channel; absent: the process may send none. @returns what is wrong with it */
  readonly onMessage?: (message: JsonObject) => string | undefined
}

export type PluginProcess = {
  call(tool: string, input: JsonObject, signal: AbortSignal): Promise<ToolResult>
  /** Sends a request to the process. Never rejects. */
  ask(method: string, params: object, signal: AbortSignal, output?: (text: string) => void): Promise<Reply>
  /** Starts the process where none runs, and asks one that rested whether it is well. @returns why none runs */
  keep(): Promise<string | undefined>
}

/** `value` is the result; of a refusal, `{ error }` with the `code` that the process gave. `why` says what went wrong with the process. */
export type Reply = { readonly value: unknown; readonly code?: number } | { readonly why: string }
type Running = {
  request(method: string, params: object, signal: AbortSignal, output?: (text: string) => void): Promise<Reply>
  isSound(): boolean
  end(): void
  usedAt: number
}

/** Starts a process when it is needed, and again after a failure: later and later while it fails in a row. */
function createStarts(options: ProcessOptions) {
  const { manifest, now = Date.now } = options
  const state: { running?: Running | undefined; failures: number; why: string; notBefore: number; idle?: ReturnType<typeof setTimeout> } = {
    failures: 0,
    why: '',
    notBefore: 0,
  }

  function failed(why: string): string {
    state.running?.end()
    state.running = undefined
    state.failures += 1
    state.why = why
    state.notBefore = now() + (state.failures < 2 ? 0 : Math.min(longestBackOffMs, 500 * 2 ** (state.failures - 1)))
    return why
  }

  /** Starts it and greets it, or asks the one that rested whether it is well. @returns why there is none */
  async function ready(): Promise<Running | string> {
    const { running } = state
    if (running?.isSound() && now() - running.usedAt < restMs) return running
    if (running !== undefined) {
      const healthy = await running.request('health', {}, AbortSignal.timeout(healthMs))
      if ('value' in healthy) {
        Object.assign(running, { usedAt: now() })
        state.failures = 0
        return running
      }
      failed(healthy.why)
    }
    const wait = state.notBefore - now()
    if (wait > 0)
      return `its process failed ${state.failures} times in a row; it is started again in ${Math.ceil(wait / 1_000)} s: ${state.why}`
    const started = start(options)
    state.running = started
    const { name, version } = manifest
    const hello = await started.request('hello', { protocol, name, version }, AbortSignal.timeout(helloMs))
    const why = 'why' in hello ? hello.why : whyNoGreeting(hello.value, manifest)
    return why === undefined ? started : failed(`its process gave no proper greeting: ${why}`)
  }

  /** Notes that it answered; one that stays idle is ended, unless it brings messages by itself. */
  function answered(running: Running): void {
    state.failures = 0
    if (options.onMessage !== undefined) return
    state.idle = setTimeout(() => {
      running.end()
      state.running = undefined
    }, idleMs)
    state.idle.unref()
  }

  return {
    failed,
    answered,
    ready() {
      clearTimeout(state.idle)
      return ready()
    },
    lastFailure: () => state.why,
  }
}

export function createPluginProcess(options: ProcessOptions): PluginProcess {
  const { maxOutputBytes, closed, now = Date.now } = options
  const starts = createStarts(options)
  const queue: { last: Promise<unknown> } = { last: Promise.resolve() }

  async function ask(...[method, params, signal, output]: Parameters<PluginProcess['ask']>): Promise<Reply> {
    if (signal.aborted || closed.aborted) return { why: 'cancelled before it started' }
    const running = await starts.ready()
    if (typeof running === 'string') return { why: running }
    const reply = await running.request(method, params, signal, output)
    running.usedAt = now()
    if ('why' in reply) return { why: starts.failed(reply.why) }
    starts.answered(running)
    return reply
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = queue.last.then(work)
    queue.last = turn.catch(() => undefined)
    return turn
  }

  return {
    async call(tool, input, signal) {
      const pieces = createCollector(maxOutputBytes)
      const reply = await inTurn(() => ask('call', { tool, arguments: input }, signal, pieces.push))
      if ('why' in reply) return fail(reply.why, pieces.text())
      const result = resultOf(reply.value, '')
      return { ...result, output: pieces.text() + result.output }
    },
    ask: (...asked) => inTurn(() => ask(...asked)),
    async keep() {
      const running = await inTurn(async () => (closed.aborted ? 'it was closed' : starts.ready()))
      return typeof running === 'string' ? starts.lastFailure() || running : undefined
    },
  }
}

/** A greeting may name the tools; they must be those that were approved. */
function whyNoGreeting(value: unknown, { tools }: PluginManifest): string | undefined {
  if (!isObject(value) || value.protocol !== protocol)
    return `it speaks protocol ${quote(isObject(value) ? value.protocol : value)}, not ${protocol}`
  const own = tools.map(({ spec }) => ({ name: spec.name, schema: spec.parameters }))
  const said = Array.isArray(value.tools)
    ? value.tools.map((tool) => (isObject(tool) ? { name: tool.name, schema: tool.schema } : tool))
    : value.tools
  const fits = said === undefined || canonical(said) === canonical(own)
  return fits ? undefined : 'it describes other tools than its manifest, which were approved'
}

type OpenCall = { readonly id: string; take(reply: Reply): void; readonly output: ((text: string) => void) | undefined }

function start({ spawn, plan, closed, onMessage }: ProcessOptions): Running {
  let open: OpenCall | undefined
  const child = startLineProcess({
    spawn,
    plan: { ...plan, readOnly: true },
    closed,
    onOver: (why) => open?.take({ why }),
    onLine(line) {
      const said = readMessage(line, open?.id, onMessage)
      if ('broken' in said) child.stop(said.broken)
      else if ('output' in said) open?.output?.(said.output)
      else if ('value' in said) open?.take(said)
    },
  })
  const send = (message: object) => void child.send(JSON.stringify({ jsonrpc: '2.0', ...message }))

  return {
    usedAt: 0,
    isSound: () => child.over() === undefined,
    end: () => child.stop('it was ended'),
    async request(method, params, signal, output) {
      const over = child.over()
      if (over !== undefined) return { why: over }
      child.expect()
      // Nobody can guess the next one and answer before it is asked.
      const id = crypto.randomUUID()
      const { promise, resolve } = Promise.withResolvers<Reply>()
      const take = (reply: Reply) => {
        open = undefined
        resolve(reply)
      }
      open = { id, take, output }
      const cancel = async () => {
        send({ method: 'cancel', params: { id } })
        if ((await within(cancelMs, promise)) === undefined) child.stop(`it did not answer "${method}" in time`)
      }
      signal.addEventListener('abort', cancel, { once: true })
      send({ id, method, params })
      if (signal.aborted) void cancel()
      return promise.finally(() => signal.removeEventListener('abort', cancel))
    },
  }
}

type Said =
  | { readonly broken: string }
  | { readonly output: string }
  | Exclude<Reply, { readonly why: string }>
  | { readonly ignored: true }

/** @param open the id of the open call, if there is one */
function readMessage(line: string, open: string | undefined, onMessage: ProcessOptions['onMessage']): Said {
  const message = parseJson(line)
  if (!isObject(message) || message.jsonrpc !== '2.0') return { broken: `it printed what is not JSON-RPC: ${quote(line.slice(0, 80))}` }
  const { id, method, params, result, error } = message
  if (method === 'message' && isJsonObject(params)) {
    const wrong = onMessage ? onMessage(params) : 'it is not a channel'
    return wrong === undefined ? { ignored: true } : { broken: `it sent a message that cannot be taken: ${wrong}` }
  }
  const isOutput = method === 'output' && isObject(params)
  const about = isOutput ? params.id : id
  if (about === undefined) return { ignored: true }
  if (about !== open) return { broken: `it answered call ${quote(about)}, which is not open` }
  if (isOutput) return { output: typeof params.text === 'string' ? params.text : '' }
  if (!isObject(error)) return { value: result ?? null }
  const value = { error: typeof error.message === 'string' ? error.message : quote(error) }
  return typeof error.code === 'number' ? { value, code: error.code } : { value }
}
