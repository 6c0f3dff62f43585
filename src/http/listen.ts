/** Listens on one address, answers errors as JSON, and stops in order: no new requests, then time for the running ones, then the end. */

import { networkInterfaces } from 'node:os'
import { errorResponse, HttpError } from './http-error.ts'
import type { Recorder } from './idempotency.ts'

export type Connection = {
  /** The address of the client. */
  readonly address: string
  /** True: the client wants only the head of the answer (HEAD). */
  readonly isHead?: boolean
  /** Lets this request stay quiet for as long as it takes; for streams alone. */
  stay(): void
  /** Aborted when the client closed the connection before it had the whole answer. */
  readonly disconnected: AbortSignal
  /** Takes the events of a stream for a later answer to the same request. */
  recorder?: Recorder
}

export type ListenOptions = {
  readonly hostname: string
  /** 0 takes any free port. */
  readonly port: number
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Must not throw anything but bugs. */
  readonly answer: (request: Request, connection: Connection) => Response | Promise<Response>
  readonly failed: (error: unknown) => void
  /** How many requests may be under way at once. */
  readonly maxRequests?: number
  /** More than the limit of the body itself, which answers with a sentence. */
  readonly maxBodyBytes?: number
}

export type Listening = {
  readonly port: number
  /** Stops at once: open connections are closed. */
  stop(): Promise<void>
  /** Takes no new connections, lets what runs end within this time, then stops. */
  finish(ms: number): Promise<void>
}

/** How long a connection may be quiet, in seconds. */
const idleSeconds = 30

/** @throws Error with an errno when it cannot listen there */
export function listen({ hostname, port, tls, answer, failed, maxRequests = 1_024, maxBodyBytes = 2_097_152 }: ListenOptions): Listening {
  const server = Bun.serve({
    hostname,
    port,
    tls,
    idleTimeout: idleSeconds,
    maxRequestBodySize: maxBodyBytes,
    development: false,
    // A second process on the same port would get half of the requests.
    reusePort: false,
    fetch(request, server) {
      if (server.pendingRequests > maxRequests)
        return errorResponse(
          new HttpError(503, 'too_busy', `${maxRequests} requests are under way; try again`, { 'retry-after': '1', connection: 'close' }),
        )
      return answer(request, {
        // Few requests look at these two.
        get address() {
          return server.requestIP(request)?.address ?? ''
        },
        isHead: request.method === 'HEAD',
        stay: () => server.timeout(request, 0),
        get disconnected() {
          return request.signal
        },
      })
    },
    error(error) {
      failed(error)
      return errorResponse(new HttpError(500, 'internal', 'this is a bug in BraidClaw; its log says more'))
    },
  })
  return {
    port: server.port ?? port,
    stop: () => server.stop(true),
    async finish(ms) {
      await Promise.race([server.stop(false), Bun.sleep(ms)])
      await server.stop(true)
    },
  }
}

/** Tells whether the address, with or without the brackets of a URL, reaches only this machine; other names may mean any. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|::1|\[::1\]|127(?:\.\d{1,3}){3})$/.test(host)
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** Returns the names in the Host header that mean this server. An address cannot be rebound by a foreign name server, as a name can. */
export function namesOf(host: string): readonly string[] {
  const own = ['127.0.0.1', 'localhost', '[::1]']
  if (!isEveryAddress(host)) return [...new Set([nameOf(host), ...own])]
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return [...new Set([...own, ...all.map(({ address }) => nameOf(address))])]
}

/** Returns the address as a URL spells it: IPv6 in brackets. */
export function nameOf(host: string): string {
  return host.includes(':') ? `[${host.toLowerCase()}]` : host.toLowerCase()
}

/** Returns where this machine reaches a server with these settings. */
export function localUrl({ host, port, tlsCert }: { readonly host: string; readonly port: number; readonly tlsCert?: string }): string {
  const here = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tlsCert === undefined ? 'http' : 'https'}://${nameOf(here)}:${port}`
}
