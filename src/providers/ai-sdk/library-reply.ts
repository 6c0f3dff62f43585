/** Assembles a reply from the vendor library's stream or complete answer: our parts in order, and our chunks as they arrive. */

import type { LanguageModelV4Content, LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject } from '../../kit/json.ts'
import type { ChatResponse, Log, ModelChunk } from '../../runtime/port.ts'
import { soundObject } from '../wire/call-arguments.ts'
import { libraryFailure, truncated } from '../wire/failure-of-response.ts'
import { collectParts, type PartsOptions, type ReplyBlock } from '../wire/reply-parts.ts'

export type Assembly = ReturnType<typeof startAssembly>

const stops = { stop: 'stop', length: 'length', 'content-filter': 'content_filter', 'tool-calls': 'tool_calls', other: 'other' } as const

export function startAssembly(options: PartsOptions & { readonly model: string; readonly log: Log }) {
  const { provider } = options
  const collection = collectParts(options)
  const open = new Map<string, ReplyBlock>()
  const streamed = new Map<string, number>()
  let model = options.model
  let end: { readonly reason: LanguageModelV4FinishReason; readonly usage: LanguageModelV4Usage } | undefined

  function block(type: ReplyBlock['type'], id: string): ReplyBlock {
    const known = open.get(`${type} ${id}`)
    if (known !== undefined) return known
    const fresh = collection.begin(type)
    open.set(`${type} ${id}`, fresh)
    return fresh
  }

  function call(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): void {
    if (part.providerExecuted) {
      ignored(part.type)
      return
    }
    collection.count(part.input.slice(streamed.get(part.toolCallId) ?? 0))
    const meta = mergeMeta({}, part.providerMetadata)
    collection.call({ id: part.toolCallId, name: part.toolName, raw: part.input, meta })
  }

  function ignored(type: string): void {
    options.log('debug', 'provider part ignored', { provider, type })
  }

  /** Takes one content part of a complete answer; returns the chunk to show for it. */
  function takeWhole(part: LanguageModelV4Content): ModelChunk | undefined {
    if (part.type === 'tool-call') call(part)
    else if (part.type === 'text' || part.type === 'reasoning') {
      const fresh = collection.begin(part.type === 'text' ? 'text' : 'thinking')
      fresh.meta = mergeMeta(fresh.meta, part.providerMetadata)
      return collection.add(fresh, part.text)
    } else ignored(part.type)
    return undefined
  }

  /** Takes one stream part; returns the chunk to show for it. */
  function take(part: LanguageModelV4StreamPart): ModelChunk | undefined {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end': {
        const into = block(part.type.startsWith('text') ? 'text' : 'thinking', part.id)
        if (part.providerMetadata !== undefined) into.meta = mergeMeta(into.meta, part.providerMetadata)
        // A later block of the same reply may use the id again.
        if (part.type.endsWith('-end')) open.delete(`${into.type} ${part.id}`)
        return 'delta' in part ? collection.add(into, part.delta) : undefined
      }
      case 'tool-input-delta':
        collection.count(part.delta)
        streamed.set(part.id, (streamed.get(part.id) ?? 0) + part.delta.length)
        return undefined
      case 'tool-call':
        call(part)
        return undefined
      case 'response-metadata':
        model = part.modelId ?? model
        return undefined
      case 'finish':
        end = { reason: part.finishReason, usage: part.usage }
        return undefined
      case 'error':
        throw libraryFailure(part.error, provider)
      case 'stream-start':
        for (const warning of part.warnings) options.log('debug', 'provider warning', { provider, ...warning })
        return undefined
      case 'tool-input-start':
      case 'tool-input-end':
      case 'ping':
      case 'raw':
        return undefined
      case 'custom':
        // Every reply starts with this event, which adds nothing to the other events.
        if (part.kind !== 'anthropic.message_start') ignored(part.kind)
        return undefined
      default:
        ignored(part.type)
        return undefined
    }
  }

  return {
    take,
    takeWhole,
    finish(reason: LanguageModelV4FinishReason, usage: LanguageModelV4Usage): void {
      end = { reason, usage }
    },
    answeredBy(name: string | undefined): void {
      model = name ?? model
    },
    /** @throws ProviderFailure when the reply did not reach its end */
    result(): Pick<ChatResponse, 'parts' | 'stop' | 'model'> & { readonly usage: LanguageModelV4Usage; readonly bytes: number } {
      const stop = end?.reason.unified
      if (end === undefined || stop === undefined || stop === 'interrupted' || stop === 'error') throw truncated(provider)
      return { parts: collection.parts(), stop: stops[stop], model, usage: end.usage, bytes: collection.bytes() }
    },
  }
}

/** Merges the metadata of a block's start, deltas and end under the vendor's name. An empty signature counts as no signature. */
function mergeMeta(meta: JsonObject, more: { readonly [provider: string]: unknown } | undefined): JsonObject {
  const sound = more === undefined ? undefined : soundObject(more)
  if (sound === undefined) return meta
  const merged: { [key: string]: JsonObject[string] } = { ...meta }
  for (const [provider, values] of Object.entries(sound)) {
    const before = merged[provider]
    const members = isJsonObject(values) ? Object.entries(values).filter(([, value]) => value !== '') : []
    if (members.length > 0) merged[provider] = { ...(isJsonObject(before) ? before : {}), ...Object.fromEntries(members) }
  }
  return merged
}
