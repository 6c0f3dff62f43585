/** `bridge brain`: our configured provider thinks for an agent that speaks the Messages API through two FIFOs. */

import { frame } from '../../kit/frames.ts'
import { createId } from '../../kit/id.ts'
import { messageOf, readPayload } from '../../providers/fifo/serve.ts'
import { type ChatResponse, type Provider, ProviderFailure } from '../../runtime/port.ts'
import { providerFor } from '../provider.ts'
import { type Bridging, framesFrom, writerTo } from './ends.ts'

export async function serveBrain(bridging: Bridging): Promise<void> {
  const { setup, signal } = bridging
  const provider = await providerFor(setup, setup.config.defaultProvider)
  const questions = framesFrom(bridging, 'brain_in')
  const answer = writerTo(bridging, 'brain_out')
  setup.context.process.stderr.write(`ready: ${provider.name}/${setup.config.defaultModel} thinks for ${bridging.dir}; stop with Ctrl-C\n`)
  for await (const question of questions) {
    if (question.ok && question.text.trim() === '') continue
    await answer(frame(question.ok ? await think({ bridging, provider }, question.text) : failed(bridging, question.error)))
    if (signal.aborted) return
  }
}

type Brain = { readonly bridging: Bridging; readonly provider: Provider }

/** One line: a message, or the word that the agent apologises for. */
async function think({ bridging, provider }: Brain, text: string): Promise<string> {
  const { config, redactor } = bridging.setup
  const read = readPayload(text, config.defaultModel)
  if (!read.ok) return failed(bridging, read.message)
  try {
    const response = redactor.value(await whole(provider, read.request, bridging.signal))
    return messageOf(response, createId('msg', crypto.getRandomValues(new Uint8Array(12))))
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return failed(bridging, error.message, error.code === 'timeout' ? 'timeout' : 'fatal')
  }
}

function failed({ setup: { log } }: Bridging, why: string, word: 'timeout' | 'fatal' = 'fatal'): string {
  log('warn', 'provider failed', { why })
  return JSON.stringify({ error: word })
}

async function whole(provider: Provider, request: Parameters<Provider['chat']>[0], signal: AbortSignal): Promise<ChatResponse> {
  for await (const chunk of provider.chat(request, signal)) if (chunk.type === 'done') return chunk.response
  throw new ProviderFailure('bad_response', `${provider.name}: the stream ended without an end`)
}
