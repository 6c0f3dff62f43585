/** Writes spans as OTLP/JSON (https://opentelemetry.io/docs/specs/otlp/) with the names of the conventions for generative AI. */

import { sha256 } from '../../../kit/sha256.ts'
import { cachedShare } from '../../../runtime/usage.ts'
import type { Span } from './run-spans.ts'

type AttributeValue = { readonly stringValue: string } | { readonly intValue: string } | { readonly doubleValue: number }
type Attribute = { readonly key: string; readonly value: AttributeValue }

export type Resource = { readonly version: string; readonly serviceName: string }

export type OtlpSpan = {
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
export function otlpSpan(span: Span): OtlpSpan {
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
export function otlpBody(spans: readonly Span[], { version, serviceName }: Resource): string {
  const resource = { attributes: [text('service.name', serviceName), text('service.version', version)] }
  const scopeSpans = [{ scope: { name: 'braidclaw', version }, spans: spans.map(otlpSpan) }]
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })
}

function attributesOf(span: Span): Pick<OtlpSpan, 'attributes' | 'status'> {
  const operation = { turn: 'invoke_agent', model: 'chat', tool: 'execute_tool' }[span.kind]
  const shared = [text('gen_ai.operation.name', operation), text('gen_ai.conversation.id', span.conversationId)]
  switch (span.kind) {
    case 'turn': {
      const attributes = [
        ...shared,
        text('gen_ai.agent.name', 'braidclaw'),
        text('braidclaw.channel', span.channel),
        text('braidclaw.run.id', span.runId),
      ]
      return span.code === 'answered' ? { attributes, status: {} } : failed(attributes, span.code)
    }
    case 'tool': {
      const attributes = [
        ...shared,
        text('gen_ai.tool.name', span.tool),
        text('gen_ai.tool.call.id', span.callId),
        text('braidclaw.status', span.status),
      ]
      return span.status === 'allowed' ? { attributes, status: {} } : failed(attributes, span.status)
    }
    case 'model': {
      const { usage, provider, error } = span
      const attributes: Attribute[] = [
        ...shared,
        text('gen_ai.request.model', span.model),
        ...(provider === undefined ? [] : [text('gen_ai.provider.name', provider)]),
      ]
      if (usage) {
        const { inputTokens, outputTokens, cachedInputTokens = 0, cacheWriteTokens = 0 } = usage
        attributes.push(whole('gen_ai.usage.input_tokens', inputTokens), whole('gen_ai.usage.output_tokens', outputTokens))
        attributes.push(whole('gen_ai.usage.cache_read.input_tokens', cachedInputTokens))
        attributes.push(whole('gen_ai.usage.cache_creation.input_tokens', cacheWriteTokens))
        attributes.push({ key: 'braidclaw.cached_share', value: { doubleValue: cachedShare(usage) } })
      }
      return error === undefined ? { attributes, status: {} } : failed(attributes, error)
    }
  }
}

function failed(attributes: readonly Attribute[], code: string): Pick<OtlpSpan, 'attributes' | 'status'> {
  return { attributes: [...attributes, text('error.type', code)], status: { code: 2, message: code } }
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
