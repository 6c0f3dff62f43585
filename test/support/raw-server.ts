/** Serves exactly the given bytes on loopback, and breaks the connection where a test wants that. */

import type { Socket } from 'bun'
import { unknownQuestionIn } from './window-questions.ts'

/** How a body ends: by its chunks, by its length, only by closing the connection, or cut off in the middle of its chunks. */
export type End = 'chunked' | 'length' | 'close' | 'cut'

export type RawServer = Disposable & { readonly url: string /** The bodies of the requests so far. */; readonly asked: readonly string[] }

/** Sends these answers in order, the last one for ever; each on its own connection. */
export function startRaw(answers: readonly string[]): RawServer {
  const asked: string[] = []
  const server = Bun.listen<{ heard: Buffer; left?: Buffer }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { heard: Buffer.alloc(0) }
      },
      async data(socket, bytes) {
        socket.data.heard = Buffer.concat([socket.data.heard, bytes])
        const unknown = unknownQuestionIn(socket.data.heard)
        if (unknown) return void socket.end(unknown)
        const body = bodyOf(socket.data.heard)
        if (body === undefined) return
        const n = asked.push(body) - 1
        socket.data.left = Buffer.from(answers[Math.min(n, answers.length - 1)] ?? '')
        await send(socket)
      },
      drain: send,
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, asked, [Symbol.dispose]: () => server.stop(true) }
}

/** Sends as much as the peer accepts now; the end comes after the peer had time to read the rest. */
async function send(socket: Socket<{ left?: Buffer }>): Promise<void> {
  const { left } = socket.data
  if (left === undefined) return
  const rest = left.subarray(socket.write(left))
  socket.data.left = rest.length > 0 ? rest : undefined
  if (rest.length > 0) return
  await Bun.sleep(20)
  socket.end()
}

/** Returns a whole HTTP answer with an event stream. */
export function streamed(body: string, end: End = 'chunked'): string {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n'
  if (end === 'length') return `${head}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  if (end === 'close') return `${head}Connection: close\r\n\r\n${body}`
  const chunks = `${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`
  return end === 'cut' ? chunks : `${chunks}0\r\n\r\n`
}

/** Returns a whole HTTP answer with a JSON document. */
export function document(value: unknown, status = '200 OK', headers = ''): string {
  const body = JSON.stringify(value)
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nConnection: close\r\n${headers}`
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Returns one event of chat.completions. */
export function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices })}\n\n`
}

export const done = 'data: [DONE]\n\n'

/** Undefined while the request is incomplete. */
function bodyOf(heard: Buffer): string | undefined {
  const split = heard.indexOf('\r\n\r\n')
  if (split < 0) return undefined
  const length = Number(/^content-length: *(\d+)/im.exec(heard.toString('latin1', 0, split))?.[1] ?? 0)
  const body = heard.subarray(split + 4)
  return body.length < length ? undefined : body.toString()
}
