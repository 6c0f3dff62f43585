/** Clients that cost next to nothing: bare sockets that send the same bytes and look at as little of the answer as they can. */

import type { Socket } from 'bun'

export type Follower = {
  /** Milliseconds from each event until it was here, since it was last asked. */
  delays(): number[]
  close(): void
}

const get = (port: number, path: string, token?: string) =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`

/** @returns answers a second, of requests that each connection sends one after the other for that time */
export async function answersPerSecond(port: number, path: string, connections: number, ms: number): Promise<number> {
  const request = get(port, path)
  const { bytes } = await firstAnswer(port, request)
  const state = { answers: 0, over: false }
  const sockets: Socket<{ left: number }>[] = []
  for (let at = 0; at < connections; at++)
    sockets.push(
      await Bun.connect<{ left: number }>({
        hostname: '127.0.0.1',
        port,
        socket: {
          open: (socket) => {
            socket.data = { left: bytes }
          },
          data(socket, piece) {
            socket.data.left -= piece.byteLength
            if (socket.data.left > 0) return
            state.answers += 1
            socket.data.left = bytes
            if (!state.over) socket.write(request)
          },
        },
      }),
    )
  const begun = performance.now()
  for (const socket of sockets) socket.write(request)
  await Bun.sleep(ms)
  state.over = true
  const rate = state.answers / ((performance.now() - begun) / 1_000)
  for (const socket of sockets) socket.end()
  return rate
}

/** All answers to one request have one length. */
async function firstAnswer(port: number, request: string): Promise<{ readonly bytes: number }> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const seen = { text: '' }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, piece) {
        seen.text += piece.toString()
        const length = /content-length: (\d+)\r\n/i.exec(seen.text)?.[1]
        if (length !== undefined && seen.text.length >= seen.text.indexOf('\r\n\r\n') + 4 + Number(length)) resolve(seen.text)
      },
    },
  })
  socket.write(request)
  const answer = await promise
  socket.end()
  if (!answer.startsWith('HTTP/1.1 200')) throw new Error(answer)
  return { bytes: Buffer.byteLength(answer) }
}

/** Follows GET /events; resolves when the stream has begun. */
export async function follow(port: number, token: string): Promise<Follower> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const state: { delays: number[]; rest: string } = { delays: [], rest: '' }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, piece) {
        const now = Date.now()
        const text = state.rest + piece.toString()
        state.rest = text.slice(text.lastIndexOf('\n') + 1)
        if (text.includes(': open')) resolve()
        for (const [, at] of text.matchAll(/^data: \{[^\n]*?"at":(\d{13}).*\n/gm)) state.delays.push(now - Number(at))
      },
    },
  })
  socket.write(get(port, '/events', token))
  await promise
  return {
    delays() {
      const { delays } = state
      state.delays = []
      return delays
    },
    close: () => void socket.end(),
  }
}
