/** Connects HTTP as one of the channels: it guards each request, finds out who sent it, and hands it to the routes. */

import { version } from '../../../package.json'
import { holderOf } from '../../host/access/tokens.ts'
import type { Channel, ChannelHost, Setup } from '../../host/api.ts'
import type { Telemetry } from '../../host/events/telemetry/open-telemetry.ts'
import { FailureError } from '../../host/failure.ts'
import { type Api, createApi } from '../../http/api.ts'
import { credentialOf, unauthorized } from '../../http/credentials.ts'
import { assertOurs, assertPlainPath, placesOf } from '../../http/guards.ts'
import { errorResponse, HttpError } from '../../http/http-error.ts'
import { readJsonBody } from '../../http/json-body.ts'
import { type Connection, type Listening, listen } from '../../http/listen.ts'
import { createRateLimit } from '../../http/rate-limit.ts'
import type { Values } from '../../kit/settings.ts'
import { gatewayRoutes } from './routes.ts'
import type { httpRows } from './settings.ts'
import { createTalks, httpErrorOf } from './talks.ts'
import { accessOf, type Caller } from './token-access.ts'

type HttpSettings = Values<typeof httpRows>

/** How long running turns may take to end after the stop signal. */
const finishMs = 3_000

export function createHttpChannel(setup: Setup, settings: HttpSettings): Channel {
  const state: { listening?: Listening } = {}
  return {
    name: 'http',
    async start(host, signal) {
      const talks = createTalks(host)
      const failed = (error: unknown) =>
        setup.log('error', 'request failed', { why: error instanceof Error ? (error.stack ?? error.message) : String(error) })
      const app: Api<Caller> = createApi<Caller>({ errorOf: httpErrorOf, failed })
      const counting = Promise.withResolvers<Telemetry>()
      for (const add of gatewayRoutes) add(app, { host, setup, version, talks, telemetry: counting.promise })
      state.listening = open(settings, host, { app, failed })
      const telemetry = host.telemetry(version)
      counting.resolve(telemetry)
      await aborted(host.stopping)
      await talks.close(finishMs)
      await (await telemetry).close()
      await Bun.sleep(flushMs)
      await state.listening.stop()
      void signal
    },
    place: () => `http://${nameOf(settings.host)}:${state.listening?.port ?? settings.port}`,
    async send(conversationId) {
      throw new Error(`nobody listens on HTTP for ${conversationId} without asking; name another channel`)
    },
    supportsDraftUpdates: () => false,
  }
}

/** Lets the last answers leave the process. */
const flushMs = 50

type Serving = { readonly app: Api<Caller>; readonly failed: (error: unknown) => void }

/** @throws FailureError when it cannot listen there */
function open(settings: HttpSettings, host: ChannelHost, { app, failed }: Serving): Listening {
  const wrong = createRateLimit({ perSecond: 5, burst: 50, now: Date.now })
  const each = createRateLimit({ perSecond: 1_000, burst: 4_000, now: Date.now })
  const places = { now: placesOf({ names: [], port: settings.port, secure: false }) }

  function caller({ headers }: Request, { address }: Connection): Caller | undefined {
    const credential = credentialOf(headers, `braidclaw_${settings.port}`)
    if (!credential) return undefined
    const holder = holderOf(host.tokens, credential.secret)
    const wait = holder ? each.take(holder.id) : wrong.take(address)
    if (wait !== undefined)
      throw new HttpError(429, 'too_many_requests', `too many requests; try again in ${wait} s`, { 'retry-after': String(wait) })
    if (!holder) throw unauthorized('this token is not in force; see: braidclaw token list')
    return { ...holder, access: accessOf(host.setup.config, holder) }
  }

  async function answer(request: Request, connection: Connection): Promise<Response> {
    try {
      assertOurs(request, places.now)
      assertPlainPath(request.url)
      const env = { connection, caller: () => caller(request, connection) }
      if (request.method === 'GET' || request.method === 'HEAD') return await app.fetch(request, env)
      const body = await readJsonBody(request)
      const headers = new Headers(request.headers)
      headers.set('content-type', 'application/json')
      return await app.fetch(new Request(request.url, { method: request.method, headers, body, signal: request.signal }), env)
    } catch (error) {
      if (error instanceof HttpError) return errorResponse(error)
      throw error
    }
  }

  try {
    const listening = listen({ hostname: settings.host, port: settings.port, answer, failed })
    places.now = placesOf({
      names: ['127.0.0.1', 'localhost', '[::1]', nameOf(settings.host)],
      port: listening.port,
      secure: false,
      proxies: settings.allowedHosts,
    })
    return listening
  } catch (error) {
    const why =
      error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
        ? 'something listens there already; name another --port'
        : error instanceof Error
          ? error.message
          : String(error)
    throw new FailureError('error', `cannot listen on ${settings.host}:${settings.port}: ${why}`)
  }
}

/** An IPv6 address stands in brackets in a URL. */
function nameOf(host: string): string {
  return host.includes(':') ? `[${host}]` : host.toLowerCase()
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}
