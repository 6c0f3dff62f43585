/** Checks whether a provider works with one short question, and asks a server for the names of its models. */

import { atEnd } from '../kit/errors.ts'
import { isObject } from '../kit/json.ts'
import type { FailureCode } from '../runtime/event.ts'
import { type Clock, type Provider, ProviderFailure } from '../runtime/port.ts'
import { startDeadline } from './wire/deadline.ts'
import { openWire } from './wire/exchange.ts'
import { vendorHosts } from './wire/facts/model-facts.ts'
import { baseUrlOf, defaults, keyHint, type ProviderDeps, vendors, type WireConfig } from './wire/provider-settings.ts'

export type Probe =
  | { readonly ok: true; readonly ms: number; readonly model: string; readonly text: string }
  | { readonly ok: false; readonly ms: number; readonly failure: { readonly code: FailureCode; readonly message: string } }

/** Never throws because of the server's behaviour; the provider's own timeouts limit the call. */
export async function probeProvider(provider: Provider, now: Clock): Promise<Probe> {
  const start = now()
  try {
    const { model, text } = await askOnce(provider)
    return { ok: true, ms: now() - start, model, text }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return { ok: false, ms: now() - start, failure: { code: error.code, message: error.message } }
  }
}

async function askOnce(provider: Provider): Promise<{ readonly model: string; readonly text: string }> {
  const question = { role: 'user', content: 'Hello! Please answer with one short sentence.' } as const
  const request = { systemPrompt: '', messages: [question], tools: [], model: '' }
  let text = ''
  for await (const chunk of provider.chat(request, new AbortController().signal)) {
    if (chunk.type === 'text') text += chunk.text
    if (chunk.type === 'done') return { model: chunk.response.model, text }
  }
  throw new ProviderFailure('bad_response', `provider "${provider.name}" ended without a reply`, { provider: provider.name })
}

/** A model as its server lists it. `isChat`: false for a model that only embeds text, paints or listens. `created`: the day, in milliseconds. */
export type ServerModel = { readonly id: string; readonly isLoaded: boolean; readonly isChat: boolean; readonly created?: number }

export type Models =
  | { readonly ok: true; readonly models: readonly ServerModel[] }
  | { readonly ok: false; readonly failure: { readonly code: FailureCode; readonly message: string } }

/** Returns the models in the order of the server. Answers within 10 s or `total_timeout_s`, whichever is shorter. */
export async function listModels(name: string, config: WireConfig, deps: ProviderDeps): Promise<Models> {
  const totalS = Math.min(config.totalTimeoutS ?? 10, 10)
  const deadline = startDeadline({ provider: name, signal: new AbortController().signal, totalS, idleS: totalS, deps })
  const limits = { provider: name, deadline, maxBytes: defaults.maxResponseBytes }
  const headers = config.apiKey ? vendors[config.kind].headers(config.apiKey) : {}
  const base = baseUrlOf(config) ?? ''

  /** Reads one page and those after it. */
  async function items(url: string, after = ''): Promise<readonly Item[]> {
    const wire = openWire({ ...limits, fetch: deps.fetch, now: deps.now, streaming: false, keyHint: keyHint(config) })
    using _end = atEnd(() => wire.close())
    const answer = await wire.ask(url + after, { headers })
    const reply = answer.type === 'document' ? answer.value : undefined
    const page = itemsIn(reply)
    if (!page) throw new ProviderFailure('bad_response', `provider "${name}" answered at ${url} without a list of models`)
    const last = isObject(reply) && reply.has_more === true ? page.at(-1) : undefined
    return last ? [...page, ...(await items(url, `?after_id=${encodeURIComponent(idOf(last))}`))] : page
  }

  // Ollama and LM Studio say on pages of their own which models are loaded, and which only embed text.
  const isLocal = config.kind === 'openai-compatible' && !Object.hasOwn(vendorHosts, URL.parse(base)?.hostname ?? '')
  const own = isLocal ? ['/api/tags', '/api/v0/models', '/api/ps'] : []
  const more = Promise.all(own.map((path) => items(base.replace(/\/v1$/, '') + path).catch(() => [])))
  try {
    const listed = await items(`${base}/models`).catch(async (error: unknown) => {
      const [tags = []] = await more
      if (tags.length === 0) throw error
      return tags
    })
    const [tags = [], studio = [], running = []] = await more
    return { ok: true, models: mergeItems(listed, [...tags, ...studio], running) }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return { ok: false, failure: { code: error.code, message: error.message } }
  } finally {
    deadline.end()
  }
}

type Item = { readonly [key: string]: unknown }

/** Returns undefined when the reply holds no list; some servers send null for an empty one. */
function itemsIn(reply: unknown): Item[] | undefined {
  const fields = isObject(reply) ? reply : {}
  const list = Array.isArray(reply) ? reply : (fields.data ?? fields.models ?? ('data' in fields || 'models' in fields ? [] : undefined))
  return Array.isArray(list) ? list.filter(isObject).filter((item) => idOf(item) !== '') : undefined
}

function idOf({ id, name, model }: Item): string {
  return [id, name, model].find((each) => typeof each === 'string') ?? ''
}

function mergeItems(listed: readonly Item[], more: readonly Item[], running: readonly Item[]): ServerModel[] {
  const said = Map.groupBy([...listed, ...more], idOf)
  const isRunning = new Set(running.map(idOf))
  return [...new Set(listed.map(idOf))].map((id) => {
    const item: Item = Object.assign({}, ...(said.get(id) ?? []))
    const { state, status } = item
    const isLoaded = state === 'loaded' || (isObject(status) && status.value === 'loaded') || isRunning.has(id)
    // Gemini lists the folder of its models with their names.
    return { id: id.replace(/^models\/(?=gem)/, ''), isLoaded, isChat: isChat(id, item), created: createdOf(item) }
  })
}

function createdOf({ created, created_at: day }: Item): number | undefined {
  if (typeof created === 'number') return created * 1000
  return typeof day === 'string' ? Date.parse(day) || undefined : undefined
}

function isChat(id: string, { type, capabilities: can, details }: Item): boolean {
  if (Array.isArray(can) && can.length > 0) return can.includes('completion') || can.includes('chat')
  if (isObject(can) && can.completion_chat === false) return false
  const kinds = [typeof type === 'string' ? type : '', isObject(details) ? String(details.family) : '', id].join(' ')
  return !/embed|bert|rerank|moderation|image|audio|speech|transcri|whisper|dall-e|(?:^|[ /:_-])(?:bge|gte|e5|tts|all-minilm|flux|sdxl)\b/i.test(
    kinds,
  )
}
