/** Provides a model behind two FIFOs: the process that reads `brain_in` and writes `brain_out` is the model. */

import { type ModelChunk, type Provider, ProviderFailure } from '../../runtime/port.ts'
import type { AskBrain } from '../provider-kind.ts'
import { assertUsable } from '../usable-reply.ts'
import { idMaker } from '../wire/call-arguments.ts'
import { readAnswer } from './answer.ts'
import { type PayloadOptions, payloadOf } from './payload.ts'
import { seedModel } from './seed-model.ts'

export type FifoProviderOptions = PayloadOptions & { readonly name: string; readonly ask: AskBrain; readonly contextTokens?: number }

export function createFifoProvider({ name, ask, contextTokens = 100_000, ...options }: FifoProviderOptions): Provider {
  return {
    name,
    capabilities: () => ({ streaming: false, tools: true, thinking: true, contextTokens }),
    async *chat(request, signal): AsyncGenerator<ModelChunk> {
      const said = await ask(`${payloadOf(request, options)}\n\n`, signal)
      if (signal.aborted) throw new ProviderFailure('aborted', `provider "${name}": cancelled`, { provider: name })
      if (!said.ok) throw silent(name, said.why)
      const model = request.model || options.model || seedModel
      const response = assertUsable(readAnswer(said.answer, { provider: name, model, newId: idMaker(request.messages) }))
      for (const part of response.parts) if (part.type !== 'call' && part.text !== '') yield { type: part.type, text: part.text }
      yield { type: 'done', response }
    },
  }
}

function silent(name: string, why: string): ProviderFailure {
  const told: { readonly [why: string]: string } = {
    unread: "nobody reads brain_in; is the brain's bridge running?",
    died: "the brain's bridge ended with the question, and again when it was asked anew; its own words are in the log",
    down: "the brain's bridge ended and is not started again yet",
    timeout: "the brain's bridge took the question and did not answer in time",
    too_long: 'the answer is longer than allowed',
  }
  const code = why === 'too_long' ? 'too_large' : 'timeout'
  return new ProviderFailure(code, `provider "${name}": ${told[why] ?? why}`, { provider: name })
}
