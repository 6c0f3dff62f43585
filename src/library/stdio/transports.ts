/** Serves an agent to others: over lines of JSON on two streams, and over HTTP as server-sent events. It runs on Node too. */

import { errorResponse, HttpError, quiet } from '../../http/http-error.ts'
import { readJsonBody } from '../../http/json-body.ts'
import { errorText } from '../../kit/errors.ts'
import { didYouMean } from '../../kit/text.ts'
import { fieldsOf } from '../../kit/wire.ts'
import type { BraidClaw } from '../agent/agent-api.ts'
import { eventsOf, type LineOutput, type SessionEnd, serveSession } from './session.ts'

/** The two streams of `stdioTransport`; default: those of this process. */
export type StdioStreams = { readonly input?: AsyncIterable<Uint8Array | string>; readonly output?: LineOutput }

/**
 * Reads `{"prompt": "…"}` lines and writes one event a line, until the input ends. The agent stays open; a reader that goes away cancels the
 * turn. After a first line `{"hello": {"protocol": 1}}` the client may also approve, cancel and so on (docs/library.md).
 * @returns how it ended: `answered`, or the ending of the last turn that was not answered
 */
export async function stdioTransport(
  agent: BraidClaw,
  { input = process.stdin, output = process.stdout }: StdioStreams = {},
): Promise<SessionEnd> {
  return serveSession({
    input,
    output,
    version: 'library',
    open(client) {
      if (client && (client.modelCall || client.tools.length > 0 || client.rules.length > 0))
        throw new Error('this agent has its tools, threads and model already; leave them out of the hello')
      return { ...agent, close: async () => {} }
    },
  })
}

export type HttpTransport = {
  /** Answers `POST {"prompt": "…"}` with the events of a turn as server-sent events. Never rejects. */
  fetch(request: Request): Promise<Response>
}

/** `fetch` fits Bun.serve, hono and every server of Web requests; docs/library.md shows it under Node's own. It authenticates nobody. */
export function httpTransport(agent: Pick<BraidClaw, 'run'>): HttpTransport {
  return {
    async fetch(request) {
      try {
        const prompt = await promptOf(request)
        const headers = { ...quiet, 'content-type': 'text/event-stream' }
        return new Response(sse(agent, prompt, request.signal), { headers })
      } catch (error) {
        return errorResponse(error instanceof HttpError ? error : new HttpError(400, 'bad_body', errorText(error)))
      }
    },
  }
}

/** @throws HttpError 400, 405, 408, 413, 415 */
async function promptOf(request: Request): Promise<string> {
  const allow = { allow: 'POST' }
  if (request.method !== 'POST') throw new HttpError(405, 'method', `${request.method} is not allowed; send POST {"prompt": "…"}`, allow)
  const { value } = await readJsonBody(request)
  const { prompt, ...others } = fieldsOf(value)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new HttpError(400, 'unknown_member', `"${unknown}" is not known${didYouMean(unknown, ['prompt'])}; send {"prompt": "…"}`)
  if (typeof prompt === 'string') return prompt
  throw new HttpError(400, 'no_prompt', `"prompt" is ${typeof prompt}; send {"prompt": "…"} with a text`)
}

/** Takes an event from the agent when the client has read the one before. A client that goes away cancels the turn. */
function sse(agent: Pick<BraidClaw, 'run'>, prompt: string, gone: AbortSignal): ReadableStream<Uint8Array> {
  const stop = new AbortController()
  gone.addEventListener('abort', () => stop.abort(), { once: true })
  if (gone.aborted) stop.abort()
  const events = eventsOf(agent, prompt, stop.signal)
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await events.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`))
      },
      async cancel() {
        stop.abort()
        await events.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
