/** Connects HTTP as one of the channels: programs and browsers with a token talk to the agent. */

import { accessSync, constants } from 'node:fs'
import { version } from '../../../package.json'
import type { Setup } from '../../host/api.ts'
import type { Telemetry } from '../../host/events/telemetry/open-telemetry.ts'
import { FailureError } from '../../host/failure.ts'
import { createIdempotency } from '../../http/idempotency.ts'
import { bodyLimits } from '../../http/json-body.ts'
import { isLoopback, type Listening, nameOf, namesOf } from '../../http/listen.ts'
import { listenProblem, serveApi, simpleJson } from '../../http/serve-api.ts'
import { aborted } from '../../kit/abort.ts'
import { errorText, traceOf } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import type { Values } from '../../kit/settings.ts'
import { watchFile } from '../../memory/database-file.ts'
import { type Channel, type ChannelHost, healthOf } from '../inbox/channel-api.ts'
import { accessOf, createHolders, type Holders, tlsOf } from './access.ts'
import { createOpenConversations, errorFields } from './open-conversations.ts'
import { type httpRows, sessionCookie } from './settings.ts'

type HttpSettings = Values<typeof httpRows>

/** How long running turns may take to end after the stop signal, and then their last answers to leave. */
const finishMs = 3_000
const flushMs = 50

export function createHttpChannel(setup: Setup, settings: HttpSettings): Channel {
  const state: { listening?: Listening; note: string } = { note: '' }
  const scheme = settings.tlsCert === undefined ? 'http' : 'https'
  return {
    name: 'http',
    async start(host) {
      const holders = createHolders(host, setup.log, settings.tokenFile)
      const openConversations = createOpenConversations(host, holders)
      state.note = noteOf(settings, holders)
      const counting = Promise.withResolvers<Telemetry>()
      state.listening = open({ setup, settings, host, holders, openConversations, telemetry: counting.promise })
      host.trouble()
      const telemetry = host.telemetry(version)
      counting.resolve(telemetry)
      await aborted(host.stopping)
      await openConversations.close(finishMs)
      await (await telemetry).close()
      await Bun.sleep(flushMs)
      await state.listening.stop()
    },
    place: () => `${scheme}://${nameOf(settings.host)}:${state.listening?.port ?? settings.port}${state.note}`,
    async send(conversationId) {
      throw new Error(`the HTTP channel cannot send to ${conversationId} unasked; name another channel`)
    },
    supportsDraftUpdates: () => false,
  }
}

/** @throws FailureError when others could reach the server and nobody has a token */
function noteOf({ host }: HttpSettings, holders: Holders): string {
  const others = isLoopback(host) ? '' : ' for other machines too'
  if (holders.any()) return others
  const how = 'braidclaw token new me --scope admin'
  if (!isLoopback(host))
    throw new FailureError(
      'error',
      `channels.http.host: on ${host} other machines reach the gateway, and nobody has a token yet; make one first: ${how}`,
    )
  return ` (nobody has a token yet: ${how})`
}

type ServerParts = {
  readonly setup: Setup
  readonly settings: HttpSettings
  readonly host: ChannelHost
  readonly holders: Holders
  readonly openConversations: ReturnType<typeof createOpenConversations>
  readonly telemetry: Promise<Telemetry>
}

/** @throws FailureError when it cannot listen there */
function open({ setup, settings, host, holders, openConversations, telemetry }: ServerParts): Listening {
  const failed = (error: unknown) => setup.log('error', 'request failed', { why: traceOf(error) })
  const tls = tlsOf(settings)
  const app = lazy(async () => {
    const { gatewayApi } = await import('./gateway-api.ts')
    return gatewayApi({ host, setup, version, openConversations, telemetry, holders, secure: tls !== undefined }, failed)
  })
  try {
    return serveApi({
      app: app.get,
      simple: { '/health': createHealth(setup, host) },
      hostname: settings.host,
      port: settings.port,
      tls,
      proxies: settings.allowedHosts,
      names: namesOf(settings.host),
      // More, so that a refusal says which limit.
      maxBodyBytes: picturesBytes + 1_048_576,
      bodyLimits: (path, isKnown) => (isKnown && takesPictures.test(path) ? { ...bodyLimits, maxBytes: picturesBytes } : bodyLimits),
      cookie: sessionCookie,
      callerOf({ kind, secret }) {
        const holder = kind === 'bearer' ? holders.bySecret(secret) : holders.byCookie(secret)
        return holder && { ...holder, access: accessOf(setup.config, holder) }
      },
      idempotency: createIdempotency(host.replies),
      errorFields,
      hints: { token: 'braidclaw token new NAME makes one', host: 'list the name in channels.http.allowed_hosts' },
      failed,
      now: Date.now,
    })
  } catch (error) {
    throw new FailureError('error', `cannot listen on ${settings.host}:${settings.port}: ${listenProblem(error)}`)
  }
}

/** The longest body of a turn, which may have pictures in base64. */
const picturesBytes = 16_777_216
const takesPictures = /^\/(?:run|chat|v1\/(?:chat\/completions|responses))$/

/** Answers GET /health: 503 while the database cannot be used. */
function createHealth({ config, log }: Setup, host: ChannelHost): () => Response {
  const assertInPlace = watchFile(config.memory.path)
  const state = { why: '' }
  return () => {
    try {
      assertInPlace()
      accessSync(config.memory.path, constants.W_OK)
      const answer = simpleJson(healthOf(host, version))
      state.why = ''
      return answer
    } catch (error) {
      const why = errorText(error)
      if (why !== state.why) log('error', 'the database takes no writes', { why })
      state.why = why
      return simpleJson({ ok: false, version }, 503)
    }
  }
}
