/** Speaks chat.completions: one request, and its answer as a stream of events or, from servers that do not stream, as one document. */

import { idMaker } from '../arguments.ts'
import type { Exchange, Talk } from '../talk.ts'
import { vendors } from '../vendors.ts'
import { startReply } from './reply.ts'
import { chatBody } from './request.ts'
import { hearStream } from './stream.ts'

export async function converse(talk: Talk): Promise<Exchange> {
  const { name, config, deps, request, wire, baseUrl, maxBytes } = talk
  const body = chatBody(request, config)
  const answer = await wire.ask(`${baseUrl}/chat/completions`, { method: 'POST', headers: headersFor(config.apiKey), body })
  const reply = startReply({ provider: name, model: request.model || config.model, maxBytes, newId: idMaker(request.messages) })
  if (answer.type === 'stream') return { next: hearStream({ body: answer.body, reply, sleep: deps.sleep }), reply: reply.result }
  reply.takeWhole(answer.value)
  return { next: async () => reply.shown(), reply: () => ({ ...reply.result(), rawProviderPayload: answer.value }) }
}

function headersFor(apiKey: string | undefined): { readonly [name: string]: string } {
  return { 'content-type': 'application/json', ...(apiKey ? vendors['openai-compatible'].headers(apiKey) : {}) }
}
