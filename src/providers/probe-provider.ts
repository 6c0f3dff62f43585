/** Checks whether a provider works: it sends one short question and reports the time and the answer. */

import type { FailureCode } from '../runtime/event.ts'
import { type Clock, type Provider, ProviderFailure } from '../runtime/port.ts'

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
