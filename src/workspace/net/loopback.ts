/** Provides tests with raw loopback servers and a gate that resolves names only to them. */

import { createGuardedFetch, type GuardedFetch, type GuardOptions } from './guarded.ts'

export type Server = Disposable & { readonly port: number; readonly seen: string[] }

type Peer = { write(data: string | Uint8Array): number; end(): void; readonly closed: () => boolean }

/** Calls `reply` for each connection once its request head is complete. `seen` collects the request texts. */
export function raw(reply: (peer: Peer, request: string) => void | Promise<void>, { hostname = '127.0.0.1', port = 0 } = {}): Server {
  const seen: string[] = []
  const listener = Bun.listen<{ text: string; closed: boolean }>({
    hostname,
    port,
    socket: {
      open(socket) {
        socket.data = { text: '', closed: false }
      },
      data(socket, chunk) {
        const { data } = socket
        const before = data.text.includes('\r\n\r\n')
        data.text += chunk.toString()
        if (before || !data.text.includes('\r\n\r\n')) return
        seen.push(data.text)
        void reply({ write: (bytes) => socket.write(bytes), end: () => socket.end(), closed: () => data.closed }, data.text)
      },
      close(socket) {
        socket.data.closed = true
      },
    },
  })
  return { port: listener.port, seen, [Symbol.dispose]: () => listener.stop(true) }
}

/**
 * Every `*.test` name resolves to 127.0.0.1; only loopback addresses on `ports` count as public; `private.test` URLs are refused by name.
 */
export function guarded(ports: readonly number[], changes: Partial<GuardOptions> = {}): GuardedFetch {
  return createGuardedFetch({
    judgeUrl: ({ url }) =>
      url.includes('private.test') ? { ok: false, rule: 'url.local_name', reason: 'private.test is refused' } : { ok: true },
    judgeAddress: ({ ip, port }) =>
      ip === '127.0.0.1' && ports.includes(port) ? { ok: true } : { ok: false, rule: 'url.private_address', reason: `${ip} is private` },
    resolve: async () => ['127.0.0.1'],
    maxBytes: 10_000,
    timeoutMs: 5_000,
    ...changes,
  })
}

export function answer(body: string, head = ''): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${head}\r\n${body}`
}

export function redirect(to: string, status = 302): string {
  return `HTTP/1.1 ${status} Found\r\nConnection: close\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`
}
