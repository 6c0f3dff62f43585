/**
 * Makes one HTTP exchange with one checked address. Uses node:http, because Bun's fetch resolves names itself and would ask a rebinding
 * server again.
 */

import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Outgoing } from './judge.ts'

/** Resolves with the head of the response; the caller reads the body. Rejects with the system's error. */
export async function connect(outgoing: Outgoing, ip: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { request } = outgoing.url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  signal.throwIfAborted()
  const sent = request(outgoing.url, settings(outgoing, ip), resolve)
  const stop = () => sent.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  sent.on('close', () => signal.removeEventListener('abort', stop))
  // Also catches errors after the head, which the body's own error has already reported.
  sent.on('error', reject)
  // The request did not ask for an upgrade, and without a listener it would never settle.
  sent.on('upgrade', (_answer, socket) => {
    socket.destroy()
    reject(new Error('the server switched to another protocol'))
  })
  sent.end(outgoing.body)
  return promise
}

function settings({ method, headers, body }: Outgoing, ip: string): RequestOptions {
  const family = ip.includes(':') ? 6 : 4
  return {
    method,
    headers: body === undefined ? headers : { ...headers, 'content-length': String(new TextEncoder().encode(body).length) },
    // No agent: a kept-alive connection might lead to an address that was judged for another request.
    agent: false,
    maxHeaderSize: 32 * 1024,
    lookup: (_host, { all }, done) => (all ? done(null, [{ address: ip, family }]) : done(null, ip, family)),
  }
}

const unreachable = ['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ETIMEDOUT']

/** True when nothing was sent, so another address of the same host may be tried. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && unreachable.includes(String(error.code))
}
