/** A model on loopback without latency that speaks chat.completions as a stream; the model's name chooses what it does. */

type Body = { readonly model: string; readonly messages: readonly { readonly role: string }[]; readonly tools?: readonly unknown[] }
type Scenario = {
  readonly rounds: number
  readonly tool: { readonly name: string; readonly arguments: string }
  readonly answer: readonly string[]
  /** Milliseconds before each reply, which no real model sends at once. */
  readonly thinkMs?: number
  /** Milliseconds between the pieces of the answer; absent: all are sent at once. */
  readonly paceMs?: number
}

const read = { name: 'file_read', arguments: '{"path":"notes.txt"}' }
const shell = { name: 'shell', arguments: '{"command":"ls"}' }
const change = { name: 'shell', arguments: '{"command":"date > changed"}' }
const brief = ['Hello', ' from', ' the', ' model', '.']

/** `rounds` answers with one tool call each, then the text. */
export const scenarios: { readonly [model: string]: Scenario } = {
  text: { rounds: 0, tool: read, answer: brief },
  /** The same answer, asked for by the filter. */
  filter: { rounds: 0, tool: read, answer: brief },
  'one-tool': { rounds: 1, tool: read, answer: brief },
  /** The same with a key as long as real ones, for which all that is shown and kept is searched. */
  'one-tool-key': { rounds: 1, tool: read, answer: brief },
  '20-reads': { rounds: 20, tool: read, answer: brief },
  'one-shell': { rounds: 1, tool: shell, answer: brief },
  'one-shell-thinking': { rounds: 1, tool: shell, answer: brief, thinkMs: 300 },
  /** A command whose change is judged and applied. */
  'one-change': { rounds: 1, tool: change, answer: brief },
  '20-shells': { rounds: 20, tool: shell, answer: brief },
  /** A run with much to watch. */
  busy: { rounds: 20, tool: read, answer: Array.from({ length: 200 }, (_, at) => `word${at} `), paceMs: 5 },
  '4000-deltas': { rounds: 0, tool: read, answer: Array.from({ length: 4000 }, (_, at) => `word${at} `) },
}

/** Returns the milliseconds of a turn in which the model thinks. */
export function thinkingOf(scenario: string): number {
  const { rounds = 0, thinkMs = 0 } = scenarios[scenario] ?? {}
  return (rounds + 1) * thinkMs
}

export type Stats = { readonly requests: number; readonly firstBytes: number; readonly firstTools: number }

if (import.meta.main) serve()

/** Prints its port. `GET /stats` says what came since it was last asked. */
function serve(): void {
  const answers = new Map(
    Object.entries(scenarios).map(([model, { answer }]) => [
      model,
      stream(
        answer.map((content) => ({ content })),
        'stop',
      ),
    ]),
  )
  let stats = { requests: 0, firstBytes: 0, firstTools: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/stats': () => {
        const said = stats
        stats = { requests: 0, firstBytes: 0, firstTools: 0 }
        return Response.json(said)
      },
      '/v1/chat/completions': {
        POST: async (request) => {
          const text = await request.text()
          const body: Body = JSON.parse(text)
          stats.requests += 1
          if (stats.requests === 1) stats = { requests: 1, firstBytes: Buffer.byteLength(text), firstTools: body.tools?.length ?? 0 }
          const scenario = scenarios[body.model]
          if (scenario === undefined) return Response.json({ error: { message: `no scenario "${body.model}"` } }, { status: 404 })
          const step = nextStep(body, scenario)
          if (scenario.thinkMs) await Bun.sleep(scenario.thinkMs)
          return sse(step ?? paced(answers.get(body.model) ?? '', scenario.paceMs))
        },
      },
    },
  })
  console.log(server.port)
}

function nextStep({ messages }: Body, { rounds, tool }: Scenario): string | undefined {
  const lastUser = messages.findLastIndex((message) => message.role === 'user')
  const done = messages.slice(lastUser + 1).filter((message) => message.role === 'tool').length
  if (done >= rounds) return undefined
  return stream([{ tool_calls: [{ index: 0, id: `call_${done + 1}`, type: 'function', function: tool }] }], 'tool_calls')
}

function stream(deltas: readonly object[], reason: string): string {
  const chunk = (choice: object): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`
  const usage = { prompt_tokens: 100, completion_tokens: deltas.length, total_tokens: 100 + deltas.length }
  const last = `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [], usage })}\n\n`
  return [
    chunk({ delta: { role: 'assistant', content: '' } }),
    ...deltas.map((delta) => chunk({ delta })),
    chunk({ delta: {}, finish_reason: reason }),
    last,
    'data: [DONE]\n\n',
  ].join('')
}

/** Sends one event after the other, this far apart. */
function paced(text: string, ms: number | undefined): string | ReadableStream<Uint8Array> {
  if (ms === undefined) return text
  const events = text.match(/[^\n]+\n\n/g) ?? []
  return new ReadableStream({
    async start(controller) {
      for (const event of events) {
        controller.enqueue(new TextEncoder().encode(event))
        await Bun.sleep(ms)
      }
      controller.close()
    },
  })
}

function sse(body: string | ReadableStream<Uint8Array>): Response {
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
