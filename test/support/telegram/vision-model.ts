/** Simulates OpenRouter's chat completions on loopback, for a model that sees. */

export type SeenRequest = {
  readonly authorization: string | null
  readonly model: string
  readonly text: string
  /** The data URIs of the pictures. */
  readonly pictures: readonly string[]
}

type Body = { readonly model: string; readonly messages: readonly { readonly content: readonly Content[] }[] }

type Content = { readonly type: string; readonly text?: string; readonly image_url?: { readonly url: string } }

/** `answer` returns the text, or a whole response. */
export function startVisionModel(answer: (n: number) => string | Response | Promise<Response>) {
  const seen: SeenRequest[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (new URL(request.url).pathname !== '/api/v1/chat/completions') return new Response('no', { status: 404 })
      const { model, messages }: Body = JSON.parse(await request.text())
      const content = messages.at(-1)?.content ?? []
      const pictures = content.flatMap((part) => part.image_url?.url ?? [])
      const text = content.flatMap((part) => part.text ?? []).join('')
      seen.push({ authorization: request.headers.get('authorization'), model, text, pictures })
      const said = await answer(seen.length - 1)
      return said instanceof Response ? said : Response.json(completion(model, said))
    },
  })
  return { base: `http://127.0.0.1:${server.port}/api/v1`, seen, [Symbol.dispose]: () => void server.stop(true) }
}

const usually = { prompt_tokens: 1_200, completion_tokens: 40 }

export function completion(model: string, text: string, usage = usually): object {
  return {
    id: 'gen-1',
    provider: 'Nvidia',
    model,
    object: 'chat.completion',
    created: 1,
    choices: [
      { index: 0, finish_reason: 'stop', native_finish_reason: 'stop', message: { role: 'assistant', content: text, refusal: null } },
    ],
    usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens },
  }
}
