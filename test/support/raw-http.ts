/** Speaks HTTP byte by byte, for requests that no client library would send. */

import { connect } from 'node:net'

export type RawAnswer = { readonly status: number; readonly head: string; readonly body: string }

/** Sends the bytes as they are, and reads until the server closes, `until` is in what was read, or `signal` says so. Bounded by `ms`. */
export function sendRaw(
  port: number,
  bytes: string | Uint8Array,
  { ms = 30_000, until, signal }: { ms?: number; until?: RegExp; signal?: AbortSignal } = {},
): Promise<RawAnswer> {
  const { promise, resolve } = Promise.withResolvers<RawAnswer>()
  const read = { text: '' }
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
  const done = () => {
    clearTimeout(late)
    socket.destroy()
    const [head = '', ...body] = read.text.split('\r\n\r\n')
    resolve({ status: Number(/^HTTP\/1\.[01] (\d+)/.exec(head)?.[1] ?? 0), head, body: body.join('\r\n\r\n') })
  }
  const late = setTimeout(done, ms)
  const isWhole = () => {
    const [head = '', body] = read.text.split('\r\n\r\n')
    const length = /content-length: (\d+)/i.exec(head)?.[1]
    return until ? until.test(read.text) : body !== undefined && length !== undefined && Buffer.byteLength(body) >= Number(length)
  }
  socket.on('data', (piece) => {
    read.text += piece.toString('utf8')
    if (isWhole()) done()
  })
  socket.on('close', done)
  signal?.addEventListener('abort', done)
  socket.on('error', done)
  return promise
}

/** Builds a request; each header stands as it is given, also twice. */
export function rawRequest(line: string, headers: readonly string[], body = ''): string {
  return [line, ...headers, ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]), '', body].join('\r\n')
}
