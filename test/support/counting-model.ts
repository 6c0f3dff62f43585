/** A model on loopback that always answers the same. */

import { unknownQuestion } from './window-questions.ts'

type Asked = { readonly messages: readonly { readonly role: string; readonly content: string }[] }

/** Starts a model that answers "One two three.", with the requests that it got. */
export function countingModel() {
  const asked: Asked[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      asked.push(JSON.parse(await request.text()))
      const chunks = ['One ', 'two ', 'three.'].map(
        (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`,
      )
      return new Response(`${chunks.join('')}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const config = `[providers.models.fake]\nkind = "openai-compatible"\nbase_url = "${server.url.href}v1"\nmodel = "m"\n`
  return { asked, config, [Symbol.dispose]: () => void server.stop(true) }
}
