/** Opens what a server tells about itself: metrics of its home, and traces where OTEL_EXPORTER_OTLP_ENDPOINT says. */

import type { Metric } from '../../../http/prometheus.ts'
import { errorText } from '../../../kit/errors.ts'
import { createJournalFeed, type JournalFeed } from '../../../memory/journal/journal-feed.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createChainWatch } from '../../../receipts/verify/chain-watch.ts'
import type { Log } from '../../../runtime/port.ts'
import { readStop } from '../../../service/stop-file.ts'
import { createProviderFetch } from '../../../workspace/net/provider-fetch.ts'
import type { HomePoll } from '../home-poll.ts'
import type { EventHub } from '../host-event.ts'
import { createExporter, type Exporter, headersIn, type OtelEnv, tracesUrl } from './exporter.ts'
import { createSpanReader, type Span } from './run-spans.ts'

type TelemetrySetup = { readonly context: { readonly env: OtelEnv }; readonly log: Log; readonly paths: { readonly estop: string } }

export type Telemetry = {
  metrics(): readonly Metric[]
  /** Sends the last traces. */
  close(): Promise<void>
}

export type TelemetryOptions = {
  readonly setup: TelemetrySetup
  readonly memory: Memory
  readonly events: EventHub
  /** The files of the receipts. */
  readonly receipts: { readonly log: string; readonly key: string }
  /** Calls its argument again and again. */
  readonly poll: HomePoll
  readonly turns: () => { readonly running: number; readonly waiting: number }
  readonly questions: () => readonly unknown[]
  readonly version: string
  readonly signal: AbortSignal
}

/** The chain is read in slices of this length, so that no turn waits for it. */
const sliceMs = 5
/** A caller who asks for the metrics waits for the answer. */
const askedMs = 50
/** The same interval as the event hub's, which polls then: an idle server wakes for nothing else. */
const lookMs = 500
const secondMs = 1_000

export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const { setup, memory, events, receipts, poll, turns, questions, version, signal } = options
  const failed = (error: unknown) => setup.log('error', 'metrics ended', { why: errorText(error) })
  const exporter = exporterOf(setup, version)
  const runs = followRuns({ events, feed: createJournalFeed(memory.store), exporter, signal, failed })
  const chain = createChainWatch({ ...receipts, now: () => performance.now() })
  chain.read(sliceMs)
  const loop = { delay: 0 }
  const rest = poll(() => {
    const asked = performance.now()
    setTimeout(() => {
      loop.delay = Math.max(loop.delay, performance.now() - asked)
    }, 0)
    if (chain.state().valid === undefined) chain.read(sliceMs)
  }, lookMs)

  function homeMetrics(): readonly Metric[] {
    // Read first: receipts that are appended meanwhile are in the log, and not yet in this count.
    const counted = memory.checkpoint.get()?.count ?? 0
    const isRead = !chain.read(askedMs)
    const { valid, count } = chain.state()
    const { running, waiting } = turns()
    const delay = loop.delay
    loop.delay = 0
    const broken = valid === false || (isRead && count < counted)
    return [
      one('counter', 'braidclaw_conversations_total', 'Conversations in this home.', memory.conversations.count()),
      one('counter', 'braidclaw_receipts_total', 'Receipts in the chain.', counted),
      ...(valid === undefined
        ? []
        : [
            one('gauge', 'braidclaw_receipt_chain_valid', 'Whether the chain of receipts is valid, as far as it was read.', broken ? 0 : 1),
          ]),
      one('gauge', 'braidclaw_approvals_open', 'Questions that wait for an answer in this process.', questions().length),
      one('gauge', 'braidclaw_estop', 'Whether the emergency stop is set.', readStop(setup.paths.estop) === undefined ? 0 : 1),
      one('gauge', 'braidclaw_turns_running', 'Turns that run in this process.', running),
      one('gauge', 'braidclaw_turns_waiting', 'Turns that wait for others to end: the queue depth.', waiting),
      one('gauge', 'braidclaw_event_loop_delay_seconds', 'The longest delay of the event loop since the last reading.', delay / secondMs),
      one('counter', 'braidclaw_trace_spans_lost_total', 'Spans that did not reach the collector.', exporter?.lost() ?? 0),
      one('gauge', 'process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
      one('gauge', 'process_start_time_seconds', 'When this process began, in seconds since 1970.', performance.timeOrigin / secondMs),
    ]
  }

  return {
    metrics: () => [...homeMetrics(), ...runs.metrics()],
    async close() {
      rest()
      await exporter?.close()
    },
  }
}

function one(type: Metric['type'], name: string, help: string, value: number): Metric {
  return { name, type, help, samples: [{ value }] }
}

/** The variables are those of the OpenTelemetry specification; a wrong address is logged, and nothing is sent. */
function exporterOf({ context: { env }, log }: TelemetrySetup, version: string): Exporter | undefined {
  const url = tracesUrl(env)
  if (url === undefined) return undefined
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    log('warn', 'traces are off: OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL, such as http://127.0.0.1:4318', { url })
    return undefined
  }
  const resource = { version, serviceName: env.OTEL_SERVICE_NAME || 'braidclaw' }
  return createExporter({ url, headers: headersIn(env), resource, fetch: createProviderFetch({ baseUrl: url }), log, sleep })
}

/** Keeps no process running. */
function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}

type FollowOptions = {
  readonly events: EventHub
  readonly feed: JournalFeed
  readonly exporter?: Exporter
  readonly signal: AbortSignal
  readonly failed: (error: unknown) => void
}

const pageSize = 256

/** Reads what the runs do from now on; runs of other processes on this home count too. */
function followRuns({ events, feed, exporter, signal, failed }: FollowOptions): Pick<RunMetrics, 'metrics'> {
  const metrics = createRunMetrics()
  const spansOf = createSpanReader()
  const state = { after: events.latest() }

  function read(): void {
    for (;;) {
      const entries = feed.page({ after: state.after, through: Number.MAX_SAFE_INTEGER, limit: pageSize })
      for (const entry of entries) {
        state.after = entry.seq
        for (const span of spansOf(entry)) {
          metrics.take(span)
          exporter?.add(span)
        }
      }
      if (entries.length < pageSize) return
    }
  }

  async function follow(): Promise<void> {
    while (!signal.aborted)
      for await (const { seq, event } of events.subscribe({ after: state.after }, signal)) {
        if (seq !== undefined && seq > state.after) read()
        if (event.type === 'subscription_ended' && event.reason !== 'slow') return
      }
  }

  follow().catch(failed)
  return metrics
}

type RunMetrics = ReturnType<typeof createRunMetrics>

/** Upper bounds in seconds. */
const bounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** A model may call tools that do not exist: beyond so many names the others share one. */
const mostValues = 100

function createRunMetrics() {
  const turns = counter('braidclaw_turns_total', 'Turns that ended, by channel and how they ended.', 'channel', 'code')
  const callsHelp = 'Tool calls that ended, by tool and status: allowed, denied or failed.'
  const calls = counter('braidclaw_tool_calls_total', callsHelp, 'tool', 'status')
  const denials = counter('braidclaw_tool_denials_total', 'Tool calls that were denied.', 'tool')
  const failures = counter('braidclaw_provider_errors_total', 'Model calls that failed, by what failed.', 'code')
  const tokensHelp = 'Tokens of model calls; cached_input (the hits) and cache_write are parts of input.'
  const tokens = counter('braidclaw_tokens_total', tokensHelp, 'model', 'direction')
  const cost = counter('braidclaw_cost_dollars_total', 'Cost of the model calls whose prices are known, in US dollars.', 'model')
  const unpriced = counter('braidclaw_unpriced_model_calls_total', 'Model calls whose prices are not known.', 'model')
  const turnSeconds = histogram('braidclaw_turn_duration_seconds', 'How long turns took.')
  const modelSeconds = histogram('braidclaw_model_duration_seconds', 'How long model calls took.')
  const toolSeconds = histogram('braidclaw_tool_duration_seconds', 'How long tool calls took that ran.')
  const all = [turns, calls, denials, failures, tokens, cost, unpriced, turnSeconds, modelSeconds, toolSeconds]

  function take(span: Span): void {
    const seconds = Math.max(0, span.end - span.start) / 1_000
    if (span.kind === 'turn') {
      turns.add([span.channel, span.code])
      turnSeconds.add(seconds)
    } else if (span.kind === 'tool') {
      calls.add([span.tool, span.status])
      if (span.status === 'denied') denials.add([span.tool])
      else toolSeconds.add(seconds)
    } else {
      modelSeconds.add(seconds)
      if (span.error !== undefined) failures.add([span.error])
      if (!span.usage) return
      const { inputTokens, outputTokens, cachedInputTokens = 0, cacheWriteTokens = 0, costMicros } = span.usage
      tokens.add([span.model, 'input'], inputTokens)
      tokens.add([span.model, 'cached_input'], cachedInputTokens)
      tokens.add([span.model, 'cache_write'], cacheWriteTokens)
      tokens.add([span.model, 'output'], outputTokens)
      if (costMicros === undefined) unpriced.add([span.model])
      else cost.add([span.model], costMicros / 1_000_000)
    }
  }

  return { take, metrics: () => all.map(({ metric }) => metric()) }
}

function counter(name: string, help: string, ...labels: readonly string[]) {
  const found = new Map<string, { readonly values: readonly string[]; sum: number }>()
  return {
    add(given: readonly string[], by = 1) {
      const values = found.size < mostValues || found.has(JSON.stringify(given)) ? given : given.map(() => 'other')
      const key = JSON.stringify(values)
      const row = found.get(key) ?? { values, sum: 0 }
      row.sum += by
      found.set(key, row)
    },
    metric(): Metric {
      const labelsOf = (values: readonly string[]) => Object.fromEntries(labels.map((label, at) => [label, values[at] ?? '']))
      return {
        name,
        type: 'counter',
        help,
        samples: [...found.values()].map(({ values, sum }) => ({ labels: labelsOf(values), value: sum })),
      }
    },
  }
}

function histogram(name: string, help: string) {
  const counts = bounds.map(() => 0)
  const state = { sum: 0, count: 0 }
  return {
    add(value: number) {
      state.sum += value
      state.count += 1
      for (const [at, bound] of bounds.entries()) if (value <= bound) counts[at] = (counts[at] ?? 0) + 1
    },
    metric(): Metric {
      const buckets = bounds.map((bound, at) => [bound, counts[at] ?? 0] as const)
      return { name, type: 'histogram', help, samples: [{ buckets, ...state }] }
    },
  }
}
