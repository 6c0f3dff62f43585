/** Checks whether a provider works with one short question, and asks a server for the names of its models. */

import { isObject } from '../kit/json.ts'
import type { FailureCode } from '../runtime/event.ts'
import { type Clock, type Provider, ProviderFailure } from '../runtime/port.ts'
import { startDeadline } from './wire/deadline.ts'
import { openWire } from './wire/exchange.ts'
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

export type Models =
  | { readonly ok: true; readonly models: readonly string[] }
  | { readonly ok: false; readonly failure: { readonly code: FailureCode; readonly message: string } }

/** Answers within 10 s or `total_timeout_s`, whichever is shorter. */
export async function listModels(name: string, config: WireConfig, deps: ProviderDeps): Promise<Models> {
  const totalS = Math.min(config.totalTimeoutS ?? 10, 10)
  const deadline = startDeadline({ provider: name, signal: new AbortController().signal, totalS, idleS: totalS, deps })
  const limits = { provider: name, deadline, maxBytes: defaults.maxResponseBytes }
  const wire = openWire({ ...limits, fetch: deps.fetch, now: deps.now, streaming: false, keyHint: keyHint(config) })
  try {
    const headers = config.apiKey ? vendors[config.kind].headers(config.apiKey) : {}
    const answer = await wire.ask(`${baseUrlOf(config)}/models`, { headers })
    return { ok: true, models: idsOf(answer.type === 'document' ? answer.value : undefined) }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return { ok: false, failure: { code: error.code, message: error.message } }
  } finally {
    wire.close()
    deadline.end()
  }
}

function idsOf(reply: unknown): readonly string[] {
  const list = isObject(reply) && Array.isArray(reply.data) ? reply.data : []
  return list.flatMap((model: unknown) => (isObject(model) && typeof model.id === 'string' ? [model.id] : [])).sort()
}
