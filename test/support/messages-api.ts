/** Simulates the Messages API on loopback, as curl sees it. */

import { unknownQuestion } from './window-questions.ts'

export type Payload = {
  readonly model: string
  readonly max_tokens: number
  readonly system?: string
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools?: readonly { readonly name: string; readonly description: string; readonly input_schema: object }[]
}

export type Answered = string | { readonly name: string; readonly input: object } | { readonly status: number } | { readonly raw: string }

/** `answer` is called for each request with its number, counted from 0. */
export function startApi(answer: (payload: Payload, n: number) => Answered | Promise<Answered>) {
  const asked: Payload[] = []
  const keys: (string | null)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      const payload: Payload = JSON.parse(await request.text())
      keys.push(request.headers.get('x-api-key'))
      return reply(await answer(payload, asked.push(payload) - 1), asked.length)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1/messages`,
    base: `http://127.0.0.1:${server.port}`,
    asked,
    keys,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function reply(said: Answered, n: number): Response {
  if (typeof said !== 'string' && 'status' in said)
    return Response.json({ type: 'error', error: { type: 'api_error', message: 'overloaded' } }, { status: said.status })
  if (typeof said !== 'string' && 'raw' in said) return new Response(said.raw)
  const block = typeof said === 'string' ? { type: 'text', text: said } : { type: 'tool_use', id: `toolu_${n}`, ...said }
  return Response.json({
    id: `msg_${n}`,
    type: 'message',
    role: 'assistant',
    content: [block],
    model: 'claude-haiku-4-5-20251001',
    stop_reason: typeof said === 'string' ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  })
}
