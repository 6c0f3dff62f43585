/** Talks to chat.completions: sends one request and reads the answer as a stream of events, or as one document without streaming. */

import type { Exchange, Talk } from '../wire/attempt.ts'
import { idMaker } from '../wire/call-arguments.ts'
import { vendors } from '../wire/dialects.ts'
import { startReply } from './chat-reply.ts'
import { readStream } from './chat-stream.ts'
import { chatBody } from './request.ts'

export async function converse(talk: Talk): Promise<Exchange> {
  const { name, config, deps, request, wire, baseUrl, maxBytes } = talk
  const sent = { method: 'POST', headers: headersFor(config.apiKey), body: chatBody(request, config) }
  const answer = await wire.ask(`${baseUrl}/chat/completions`, sent)
  const model = request.model || config.model
  const reply = startReply({ provider: name, model, maxBytes, newId: idMaker(request.messages), log: deps.log })
  if (answer.type === 'stream') {
    const { head, body } = answer
    return { next: readStream({ body, reply, sleep: deps.sleep, framed: isFramed(head.headers) }), reply: reply.result }
  }
  reply.takeWhole(answer.value)
  return { next: async () => reply.shown(), reply: () => ({ ...reply.result(), rawProviderPayload: answer.value }) }
}

/** A body with a length, or in chunks, reports a connection error when it breaks off. */
function isFramed(headers: Headers): boolean {
  return headers.has('content-length') || headers.has('transfer-encoding')
}

function headersFor(apiKey: string | undefined): { readonly [name: string]: string } {
  return { 'content-type': 'application/json', ...(apiKey ? vendors['openai-compatible'].headers(apiKey) : {}) }
}
