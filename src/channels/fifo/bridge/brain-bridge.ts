/** Implements `bridge brain`: our configured provider answers an agent that sends Messages API requests through two FIFOs. */

import { providerFor } from '../../../host/setup/provider-pool.ts'
import { errorText } from '../../../kit/errors.ts'
import { createId } from '../../../kit/id.ts'
import { frame } from '../../../kit/lines.ts'
import { messageOf, readPayload } from '../../../providers/fifo/serve.ts'
import type { FailureCode, Part } from '../../../runtime/event.ts'
import { type ChatRequest, type ChatResponse, type Provider, ProviderFailure } from '../../../runtime/port.ts'
import type { Redactor } from '../../../security/redaction/redact.ts'
import { type BridgeOptions, framesFrom, writerTo } from './bridge-ends.ts'

export async function serveBrain(bridging: BridgeOptions): Promise<void> {
  const { setup } = bridging
  const provider = await providerFor(setup, setup.config.defaultProvider)
  const questions = framesFrom(bridging, 'brain_in')
  const answer = writerTo(bridging, 'brain_out')
  setup.context.process.stderr.write(`ready: ${provider.name}/${setup.config.defaultModel} thinks for ${bridging.dir}; stop with Ctrl-C\n`)
  const brain: Brain = { bridging, provider, failures: { inARow: 0 } }
  for await (const question of questions) {
    if (question.ok && question.text.trim() === '') continue
    await answer(frame(question.ok ? await think(brain, question.text) : failed(bridging, question.error, 'fatal')))
  }
}

type Brain = { readonly bridging: BridgeOptions; readonly provider: Provider; readonly failures: { inARow: number } }

/** Returns one line: a message, or the error word for which the agent apologises. Every failure still gets an answer. */
async function think({ bridging, provider, failures }: Brain, text: string): Promise<string> {
  const { config, redactor } = bridging.setup
  const read = readPayload(text, config.defaultModel)
  if (!read.ok) return failed(bridging, read.message, 'fatal')
  try {
    const response = redactor.value(withoutSecretCalls(await whole(provider, read.request, bridging.signal), redactor))
    failures.inARow = 0
    return messageOf(response, createId('msg', crypto.getRandomValues(new Uint8Array(12))))
  } catch (error) {
    const passes = error instanceof ProviderFailure && passing.includes(error.code)
    failures.inARow = passes ? failures.inARow + 1 : 0
    return failed(bridging, errorText(error), passes && failures.inARow < 3 ? 'timeout' : 'fatal')
  }
}

/**
 * The calls go to tools that are not ours: a call that contains a secret is replaced by a note with its name, never changed into another
 * call.
 */
function withoutSecretCalls(response: ChatResponse, { inspect }: Redactor): ChatResponse {
  const parts = response.parts.map((part): Part => {
    const { held } = part.type === 'call' ? inspect(part) : { held: [] }
    if (part.type !== 'call' || held.length === 0) return part
    return { type: 'text', text: `(The call of ${part.name} was left out: its arguments hold ${held.join(' and ')}.)` }
  })
  const calls = parts.some(({ type }) => type === 'call')
  return { ...response, parts, stop: response.stop === 'tool_calls' && !calls ? 'stop' : response.stop }
}

/** A retry may help; from the third such failure in a row the agent is told that it does not. */
const passing: readonly FailureCode[] = ['timeout', 'network', 'server', 'rate_limit']

function failed({ setup: { log } }: BridgeOptions, why: string, word: 'timeout' | 'fatal'): string {
  log('warn', 'provider failed', { why, answered: word })
  return JSON.stringify({ error: word })
}

async function whole(provider: Provider, request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
  for await (const chunk of provider.chat(request, signal)) if (chunk.type === 'done') return chunk.response
  throw new ProviderFailure('bad_response', `${provider.name}: the stream ended without an end`)
}
