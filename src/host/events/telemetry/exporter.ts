/**
 * Sends spans to the OpenTelemetry collector that the environment names: in batches, again when it says so, and never at the cost of a turn.
 */

import { attempt, errorText } from '../../../kit/errors.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { Log } from '../../../runtime/port.ts'
import { cachedShare } from '../../../runtime/usage.ts'
import { createProviderFetch } from '../../../workspace/net/provider-fetch.ts'
import type { Span } from './run-spans.ts'

type ExporterOptions = {
  /** The whole address, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly resource: Resource
  readonly fetch: typeof fetch
  readonly log: Log
  readonly sleep: (ms: number) => Promise<void>
}

export type Exporter = ReturnType<typeof createExporter>

const batchSize = 256
const capacity = 4_096
const everyMs = 1_000
const patienceMs = 10_000
const retries = [429, 502, 503, 504]

export function createExporter({ url, headers, resource, fetch, log, sleep }: ExporterOptions) {
  const waiting: Span[] = []
  const state: { lost: number; sending?: Promise<void>; closed: boolean; warned: boolean } = { lost: 0, closed: false, warned: false }

  function lose(count: number, why: string): void {
    state.lost += count
    if (!state.warned) log('warn', 'traces are lost', { spans: count, why, url })
    state.warned = true
  }

  async function send(batch: readonly Span[]): Promise<void> {
    const body = otlpBody(batch, resource)
    for (let attempt = 0; ; attempt++) {
      const wait = await post(body, batch.length)
      if (wait === undefined) return
      if (state.closed || attempt >= 4) return lose(batch.length, 'the collector does not answer')
      await sleep(Math.max(wait, 500 * 2 ** attempt))
    }
  }

  /** @returns how long to wait before it is sent again, in milliseconds; undefined when it is settled */
  async function post(body: string, count: number): Promise<number | undefined> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
        signal: AbortSignal.timeout(patienceMs),
      })
      if (retries.includes(response.status)) {
        await response.body?.cancel()
        return Number(response.headers.get('retry-after') ?? 0) * 1_000 || 0
      }
      if (!response.ok) lose(count, `the collector answered ${response.status}`)
      else {
        const rejected = rejectedIn(await response.text())
        if (rejected > 0) lose(rejected, 'the collector rejected them')
        else state.warned = false
      }
      return undefined
    } catch {
      return 0
    }
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0) await send(waiting.splice(0, batchSize))
  }

  function begin(afterMs: number): void {
    state.sending ??= sleep(afterMs)
      .then(drain)
      .finally(() => void delete state.sending)
  }

  return {
    add(span: Span) {
      if (waiting.length >= capacity) return lose(1, 'the queue is full')
      waiting.push(span)
      begin(everyMs)
    },
    /** Sends what waits, once, and resolves. */
    async close(): Promise<void> {
      state.closed = true
      await Promise.race([drain(), sleep(patienceMs / 5)])
    },
    /** How many spans were lost: the queue was full, or the collector refused them. */
    lost: () => state.lost,
  }
}

function rejectedIn(answer: string): number {
  return attempt(() => Number(JSON.parse(answer).partialSuccess?.rejectedSpans)) || 0
}

export type OtelEnv = Readonly<Partial<Record<string, string>>>

/**
 * Returns the address for traces by the variables of the OpenTelemetry specification, which need not be a URL; undefined when nothing is
 * sent.
 */
export function tracesUrl(env: OtelEnv): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_SDK_DISABLED: off } = env
  const exporters = (env.OTEL_TRACES_EXPORTER || 'otlp').toLowerCase().split(',')
  if (off?.toLowerCase() === 'true' || !exporters.some((name) => name.trim() === 'otlp')) return undefined
  return own || (base ? `${base.replace(/\/+$/, '')}/v1/traces` : undefined)
}

/** `name=value,name=value`, each percent-encoded. */
export function headersIn({ OTEL_EXPORTER_OTLP_HEADERS: given = '' }: OtelEnv): { readonly [name: string]: string } {
  const pairs = given.split(',').flatMap((pair): [string, string][] => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === undefined || value === undefined ? [] : [[name, attempt(() => decodeURIComponent(value)) ?? value]]
  })
  return Object.fromEntries(pairs)
}

const trialMs = 3_000

/** Sends an empty list of spans. @returns undefined when traces are off */
export async function tryCollector(env: OtelEnv): Promise<{ readonly url: string; readonly problem?: string } | undefined> {
  const url = tracesUrl(env)
  if (url === undefined) return undefined
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return { url, problem: `${JSON.stringify(url)} is not an HTTP URL` }
  try {
    const { status, ok } = await createProviderFetch({ baseUrl: url })(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersIn(env) },
      body: otlpBody([], { version: '0', serviceName: 'braidclaw' }),
      signal: AbortSignal.timeout(trialMs),
    })
    return ok ? { url } : { url, problem: `what answers at ${url} refuses traces (status ${status})` }
  } catch (error) {
    return { url, problem: `nothing answers at ${url} (${errorText(error)})` }
  }
}

type AttributeValue = { readonly stringValue: string } | { readonly intValue: string } | { readonly doubleValue: number }
type Attribute = { readonly key: string; readonly value: AttributeValue }

type Resource = { readonly version: string; readonly serviceName: string }

type OtlpSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: 1 | 3
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code?: 2; readonly message?: string }
}

/** A run is a trace; its ids come from the run's, so that a run has the same trace whoever exports it. No text of anybody is included. */
function otlpSpan(span: Span): OtlpSpan {
  const { runId, start, end } = span
  const traceId = sha256(runId).slice(0, 32)
  const root = idOf(`${runId} turn`)
  const common = { traceId, startTimeUnixNano: `${Math.trunc(start)}000000`, endTimeUnixNano: `${Math.trunc(end)}000000` }
  const own = attributesOf(span)
  if (span.kind === 'turn') return { ...common, spanId: root, name: 'invoke_agent braidclaw', kind: 1, ...own }
  const name = span.kind === 'model' ? `chat ${span.model}` : `execute_tool ${span.tool}`
  const spanId = idOf(span.kind === 'model' ? `${runId} model ${start} ${end}` : `${runId} tool ${span.callId}`)
  return { ...common, spanId, parentSpanId: root, name, kind: span.kind === 'model' ? 3 : 1, ...own }
}

/** The body of POST /v1/traces. */
function otlpBody(spans: readonly Span[], { version, serviceName }: Resource): string {
  const resource = { attributes: [text('service.name', serviceName), text('service.version', version)] }
  const scopeSpans = [{ scope: { name: 'braidclaw', version }, spans: spans.map(otlpSpan) }]
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })
}

function attributesOf(span: Span): Pick<OtlpSpan, 'attributes' | 'status'> {
  const operation = { turn: 'invoke_agent', model: 'chat', tool: 'execute_tool' }[span.kind]
  const shared = [text('gen_ai.operation.name', operation), text('gen_ai.conversation.id', span.conversationId)]
  const attributes = [...shared, ...ownAttributes(span)]
  const failure = failureOf(span)
  if (failure === undefined) return { attributes, status: {} }
  return { attributes: [...attributes, text('error.type', failure)], status: { code: 2, message: failure } }
}

function failureOf(span: Span): string | undefined {
  if (span.kind === 'model') return span.error
  const [end, well] = span.kind === 'turn' ? [span.code, 'answered'] : [span.status, 'allowed']
  return end === well ? undefined : end
}

function ownAttributes(span: Span): readonly Attribute[] {
  const { kind, runId } = span
  if (kind === 'turn')
    return [text('gen_ai.agent.name', 'braidclaw'), text('braidclaw.channel', span.channel), text('braidclaw.run.id', runId)]
  if (kind === 'tool')
    return [text('gen_ai.tool.name', span.tool), text('gen_ai.tool.call.id', span.callId), text('braidclaw.status', span.status)]
  const { model, usage, provider } = span
  const named = [text('gen_ai.request.model', model), ...(provider === undefined ? [] : [text('gen_ai.provider.name', provider)])]
  if (!usage) return named
  return [
    ...named,
    whole('gen_ai.usage.input_tokens', usage.inputTokens),
    whole('gen_ai.usage.output_tokens', usage.outputTokens),
    whole('gen_ai.usage.cache_read.input_tokens', usage.cachedInputTokens ?? 0),
    whole('gen_ai.usage.cache_creation.input_tokens', usage.cacheWriteTokens ?? 0),
    { key: 'braidclaw.cached_share', value: { doubleValue: cachedShare(usage) } },
  ]
}

function idOf(name: string): string {
  return sha256(name).slice(0, 16)
}

function text(key: string, value: string): Attribute {
  return { key, value: { stringValue: value } }
}

function whole(key: string, value: number): Attribute {
  return { key, value: { intValue: String(Math.trunc(value)) } }
}
