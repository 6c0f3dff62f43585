/** Counts what the runs of a home did since this process began, for GET /metrics. */

import type { Metric, Sample } from '../../../http/prometheus.ts'
import type { Span } from './run-spans.ts'

export type RunMetrics = { take(span: Span): void; metrics(): readonly Metric[] }

/** Upper bounds in seconds. */
const bounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** A model may call tools that do not exist: beyond so many names the others share one. */
const mostValues = 100

export function createRunMetrics(): RunMetrics {
  const turns = createCounter(['channel', 'code'])
  const calls = createCounter(['tool', 'status'])
  const denials = createCounter(['tool'])
  const failures = createCounter(['code'])
  const tokens = createCounter(['model', 'direction'])
  const cost = createCounter(['model'])
  const unpriced = createCounter(['model'])
  const turnSeconds = createHistogram()
  const modelSeconds = createHistogram()
  const toolSeconds = createHistogram()

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

  return {
    take,
    metrics: () => [
      counter('braidclaw_turns_total', 'Turns that ended, by channel and how they ended.', turns),
      counter('braidclaw_tool_calls_total', 'Tool calls that ended, by tool and status: allowed, denied or failed.', calls),
      counter('braidclaw_tool_denials_total', 'Tool calls that were denied.', denials),
      counter('braidclaw_provider_errors_total', 'Model calls that failed, by what failed.', failures),
      counter('braidclaw_tokens_total', 'Tokens of model calls; cached_input (the hits) and cache_write are parts of input.', tokens),
      counter('braidclaw_cost_dollars_total', 'Cost of the model calls whose prices are known, in US dollars.', cost),
      counter('braidclaw_unpriced_model_calls_total', 'Model calls whose prices are not known.', unpriced),
      histogram('braidclaw_turn_duration_seconds', 'How long turns took.', turnSeconds),
      histogram('braidclaw_model_duration_seconds', 'How long model calls took.', modelSeconds),
      histogram('braidclaw_tool_duration_seconds', 'How long tool calls took that ran.', toolSeconds),
    ],
  }
}

type Counter = { add(values: readonly string[], by?: number): void; samples(): readonly Sample[] }

function createCounter(names: readonly string[]): Counter {
  const found = new Map<string, { readonly values: readonly string[]; sum: number }>()
  return {
    add(given, by = 1) {
      const values = found.size < mostValues || found.has(JSON.stringify(given)) ? given : given.map(() => 'other')
      const key = JSON.stringify(values)
      const row = found.get(key) ?? { values, sum: 0 }
      row.sum += by
      found.set(key, row)
    },
    samples: () =>
      [...found.values()].map(({ values, sum }) => ({
        labels: Object.fromEntries(names.map((name, at) => [name, values[at] ?? ''])),
        value: sum,
      })),
  }
}

type Histogram = { add(value: number): void; samples(): readonly Sample[] }

function createHistogram(): Histogram {
  const counts = bounds.map(() => 0)
  const state = { sum: 0, count: 0 }
  return {
    add(value) {
      state.sum += value
      state.count += 1
      for (const [at, bound] of bounds.entries()) if (value <= bound) counts[at] = (counts[at] ?? 0) + 1
    },
    samples: () => [{ buckets: bounds.map((bound, at) => [bound, counts[at] ?? 0] as const), sum: state.sum, count: state.count }],
  }
}

function counter(name: string, help: string, { samples }: Counter): Metric {
  return { name, type: 'counter', help, samples: samples() }
}

function histogram(name: string, help: string, { samples }: Histogram): Metric {
  return { name, type: 'histogram', help, samples: samples() }
}
