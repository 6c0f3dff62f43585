/** Runs one allowed call: finds the tool, limits its time and output, and turns every result or failure into an outcome. */

import { capText } from '../kit/content/output-limit.ts'
import { tokensOf } from '../kit/content/tokens.ts'
import { errorText } from '../kit/errors.ts'
import { sha256 } from '../kit/sha256.ts'
import type { Json, JsonObject, PictureRef, ToolOutcome } from '../runtime/event.ts'
import { picturesIn } from '../runtime/outcome.ts'
import type { Act, Log, Picture, Tool, ToolResult } from '../runtime/port.ts'
import type { PrivateView } from '../sandbox/contract.ts'
import { confinedBy, type SandboxedResult } from './tool-kind.ts'

export type ExecutorOptions = {
  readonly tools: readonly Tool[]
  readonly log: Log
  /** Limit of what the model sees of each result. */
  readonly room: ResultRoom
  /** Keeps a result that is longer than that, so that the model can read on; absent: the rest is lost. */
  readonly keep?: KeepResult
  /** Keeps a picture for the model; absent: the result has no pictures. */
  readonly keepPicture?: (picture: Picture) => PictureRef
  /** Removes secrets from a text. */
  readonly redact: (text: string) => string
  /** Overrides a tool's own time limit by tool name; `advice` says how to get more time. */
  readonly timeouts?: { readonly [tool: string]: { readonly ms: number; readonly advice: string } }
  readonly conversationId?: string
}

/**
 * Returns the limits of a result that the model sees, in bytes of UTF-8 and in estimated tokens, which follow the window of the model; and
 * the limit of one that is kept whole.
 */
export type ResultRoom = () => { readonly bytes: number; readonly tokens: number; readonly wholeBytes: number }

/** @returns how the model can read on from a byte; undefined when it cannot */
export type KeepResult = (callId: string, text: string) => ((offset: number) => string) | undefined

/** The view on which the call ran; its changes wait to be applied or dropped. */
export const ranOn = Symbol('ranOn')

export type Executed = ToolOutcome & { readonly [ranOn]?: PrivateView }

/** The longest time that a stopped tool may take to end its children and return its partial result. */
const GRACE_MS = 1_000
const MAX_ERROR_BYTES = 4_096
const MAX_METADATA_BYTES = 16_384
/** A shorter result would only be the notice of what was omitted. */
const leastBytes = 512

/** Never rejects, even when a tool throws, never settles or ignores its signal. */
export function createExecutor(options: ExecutorOptions): (...act: Parameters<Act>) => Promise<Executed> {
  const byName = new Map(options.tools.map((tool) => [tool.name, tool]))
  return async (act, signal) => {
    const tool = byName.get(act.call.name)
    if (tool === undefined)
      return failed(`the tool ${JSON.stringify(act.call.name)} does not exist; there are ${[...byName.keys()].join(', ')}`)
    if (signal.aborted) return failed('cancelled before it started')
    const { ms, advice } = options.timeouts?.[tool.name] ?? { ms: tool.timeoutMs, advice: '' }
    const timeoutMs = tool.limitMs?.(act.call.input) ?? ms
    return outcome(options, act.call.id, await attempt({ options, tool, act, signal, timeoutMs, advice }))
  }
}

function failed(error: string): ToolOutcome {
  return { status: 'failed', output: '', error }
}

type ToolAttempt = {
  readonly options: ExecutorOptions
  readonly tool: Tool
  readonly act: Parameters<Act>[0]
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly advice: string
}

async function attempt({ options, tool, act, signal, timeoutMs, advice }: ToolAttempt): Promise<SandboxedResult> {
  const timer = new AbortController()
  const alarm = setTimeout(() => timer.abort(), timeoutMs)
  const own = AbortSignal.any([signal, timer.signal])
  const context = { conversationId: options.conversationId ?? '', callId: act.call.id, signal: own, plan: act.judgement.plan }
  const patience = graceAfter(own)
  options.log('debug', 'tool started', { tool: tool.name, call: act.id })
  const running = invoke(tool, act.call.input, context)
  const result = await Promise.race([running, patience.over])
  patience.end()
  clearTimeout(alarm)
  const late = `timed out after ${timeoutMs / 1_000} s${advice === '' ? '' : ` (${advice})`}`
  const why = timer.signal.aborted ? late : signal.aborted ? 'cancelled' : undefined
  if (result !== undefined) return why === undefined || result.success ? result : because(why, result)
  void running.then(({ [confinedBy]: confined }) => {
    confined?.view?.drop()
    options.log('warn', 'tool ended late', { tool: tool.name, call: act.id })
  })
  return { success: false, output: '', error: `${why ?? 'stopped'}; the tool did not end in time, what it did is unknown` }
}

async function invoke(tool: Tool, ...[input, context]: Parameters<Tool['invoke']>): Promise<SandboxedResult> {
  try {
    return await tool.invoke(input, context)
  } catch (error) {
    return { success: false, output: '', error: `the tool broke: ${errorText(error)}` }
  }
}

/** Keeps the partial result and puts the reason for the stop first. What a stopped command changed is half of its work, so it is dropped. */
function because(why: string, result: SandboxedResult): SandboxedResult {
  const error = result.error === undefined || result.error === '' ? why : `${why}; ${result.error}`
  const { view, ...confined } = result[confinedBy] ?? {}
  if (view === undefined) return { ...result, error }
  view.drop()
  return { ...result, error: `${error}; its changes were dropped`, [confinedBy]: { ...confined, mode: 'dropped' } }
}

/** Resolves to undefined when the signal has fired and the grace period is over. */
function graceAfter(signal: AbortSignal): { readonly over: Promise<undefined>; end(): void } {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    timer = setTimeout(() => resolve(undefined), GRACE_MS)
  }
  signal.addEventListener('abort', begin, { once: true })
  return {
    over: promise,
    end() {
      signal.removeEventListener('abort', begin)
      clearTimeout(timer)
    },
  }
}

function outcome(options: ExecutorOptions, callId: string, result: SandboxedResult): Executed {
  const status = result.deniedBy !== undefined ? 'denied' : result.success ? 'allowed' : 'failed'
  const whole = capText(clean(options, result.output), options.room().wholeBytes)
  const { output, isCut } = shownOf(options, callId, whole)
  const trusted = trustedMetadata(options, result)
  const metadata = isCut ? { ...trusted, whole: { bytes: Buffer.byteLength(whole), sha256: sha256(whole) } } : trusted
  const view = result[confinedBy]?.view
  return {
    status,
    output,
    ...(status === 'allowed' ? {} : { error: capText(clean(options, errorOf(result)), MAX_ERROR_BYTES) }),
    metadata,
    ...picturesIn({ pictures: options.keepPicture && result.pictures?.map(options.keepPicture) }),
    ...(view === undefined ? {} : { [ranOn]: view }),
  }
}

/** Cuts a result to its room. Text that has more tokens than usual, such as base64, gets fewer bytes. */
function shownOf(
  { room, keep, log }: ExecutorOptions,
  callId: string,
  whole: string,
): { readonly output: string; readonly isCut: boolean } {
  const { bytes, tokens } = room()
  if (Buffer.byteLength(whole) <= bytes && tokensOf(whole) <= tokens) return { output: whole, isCut: false }
  let hint: ReturnType<KeepResult>
  try {
    hint = keep?.(callId, whole)
  } catch (error) {
    log('warn', 'result not kept', { call: callId, why: errorText(error) })
  }
  for (let limit = bytes; ; limit = Math.floor(limit * 0.7)) {
    const output = capText(whole, limit, hint)
    if (limit < leastBytes || tokensOf(output) <= tokens) return { output, isCut: true }
  }
}

/** A receipt repeats `sandbox` and `changes`, so these come from the sandbox that confined the children, never from the tool's metadata. */
function trustedMetadata(options: ExecutorOptions, { metadata, [confinedBy]: confined }: SandboxedResult): JsonObject | undefined {
  if (metadata === undefined && confined === undefined) return undefined
  const { sandbox: _, changes: __, whole: ___, ...trusted } = bounded(options, metadata ?? {})
  const { sandbox, mode } = confined ?? {}
  const changes = mode === 'direct' || mode === 'dropped' ? mode : undefined
  return { ...trusted, ...(sandbox ? { sandbox } : {}), ...(changes ? { changes } : {}) }
}

function errorOf({ error, deniedBy }: ToolResult): string {
  if (deniedBy === undefined) return error ?? 'the tool failed without a reason'
  return error?.includes(deniedBy) ? error : `${error ?? 'refused'} (rule ${deniedBy})`
}

/**
 * Receipts need well-formed text, and a NUL ends strings in too many programs. Redacts before any cut, because half a secret would
 * otherwise remain.
 */
function clean({ redact }: ExecutorOptions, text: unknown): string {
  const plain = typeof text === 'string' ? text : (JSON.stringify(text) ?? String(text))
  return redact(plain.toWellFormed().replaceAll('\0', '␀'))
}

function bounded(options: ExecutorOptions, metadata: JsonObject): JsonObject {
  const text = JSON.stringify(metadata)
  if (text.length > MAX_METADATA_BYTES) return { omitted: `metadata of ${text.length} characters, at most ${MAX_METADATA_BYTES} are kept` }
  return Object.fromEntries(Object.entries(metadata).map(([key, value]) => [clean(options, key), deep(options, value)]))
}

function deep(options: ExecutorOptions, value: Json): Json {
  if (typeof value === 'string') return clean(options, value)
  if (Array.isArray(value)) return value.map((item: Json) => deep(options, item))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(options, key), deep(options, item)]))
}
