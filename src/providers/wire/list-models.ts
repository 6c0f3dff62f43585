/** Asks a server for the names of its models. */

import { isObject } from '../../kit/json.ts'
import type { FailureCode } from '../../runtime/event.ts'
import { ProviderFailure } from '../../runtime/port.ts'
import { startDeadline } from './deadline.ts'
import { baseUrlOf, keyHint, vendors } from './dialects.ts'
import { openWire } from './exchange.ts'
import { defaults, type ProviderDeps, type WireConfig } from './provider-settings.ts'

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
