/** A client that costs little: one connection, one request after the other, and JSON only where the caller looks at it. */

import type { Socket } from 'bun'

export type JsonClient = {
  /** Resolves with the status and the text of the answer. */
  send(request: { readonly method?: string; readonly path: string; readonly token: string; readonly body?: string }): Promise<Answer>
  close(): void
}
export type Answer = { readonly status: number; readonly text: string }

export async function connect(port: number): Promise<JsonClient> {
  const state: { seen: Buffer; answered?: (answer: Answer) => void } = { seen: Buffer.alloc(0) }
  const socket: Socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, piece) {
        state.seen = state.seen.byteLength === 0 ? Buffer.from(piece) : Buffer.concat([state.seen, piece])
        const answer = complete(state.seen)
        if (!answer) return
        state.seen = Buffer.alloc(0)
        state.answered?.(answer)
      },
    },
  })
  return {
    send({ method = 'POST', path, token, body = '' }) {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      state.answered = resolve
      const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
      return promise
    },
    close: () => void socket.end(),
  }
}

function complete(seen: Buffer): Answer | undefined {
  const end = seen.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = seen.toString('latin1', 0, end)
  const status = Number(head.slice(9, 12))
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
  if (seen.byteLength < end + 4 + length) return undefined
  return { status, text: seen.toString('utf8', end + 4, end + 4 + length) }
}
