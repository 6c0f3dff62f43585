/** Serves a plane over HTTP: the routes load after the port is open, and a stop lets running requests end. */

import type { ReplyStore } from '../../http/contract.ts'
import { createIdempotency } from '../../http/idempotency.ts'
import { type ListenOptions, localUrl, namesOf } from '../../http/listen.ts'
import { type RawAnswers, serveApi, simpleJson } from '../../http/serve-api.ts'
import { traceOf } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import { warmUp } from '../../service/own-program.ts'
import type { ControlServer } from './control-route.ts'
import { type Counters, createCounters } from './counters.ts'
import { callerKey, createFindCaller, createSeedAccess } from './find-caller.ts'

export type ServeControlOptions = Pick<ControlServer, 'plane' | 'version' | 'hostd' | 'now' | 'log'> & {
  /** The API of models that runs use. */
  readonly models?: RawAnswers
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly tls?: ListenOptions['tls']
  /** The names that a proxy or another machine uses for this server. */
  readonly allowedHosts: readonly string[]
  readonly sharedSecret: string | undefined
  /** The shared secret is valid from these networks, besides this machine. */
  readonly compatFrom: readonly string[]
  readonly replies: ReplyStore
  /** Tells whether the database answers; for /health. */
  readonly isReachable: () => boolean
}

export type ServedControl = {
  readonly url: string
  readonly port: number
  readonly counters: Counters
  /** Answers waiting claims with 204, ends streams, and gives other requests `ms` to end. */
  close(ms: number): Promise<void>
}

/** A fleet's workers use a few addresses and one key each; a limit that they reach would only slow down honest ones. */
const rate = { perSecond: 20_000, burst: 40_000 }
const maxRequests = 8_192
const limits = { maxDepth: 64, maxMs: 30_000 }
const bodyBytes = { unknown: 65_536, known: 4_194_304, model: 16_777_216 }

/** @throws Error with an errno when it cannot listen there */
export function serveControl(options: ServeControlOptions): ServedControl {
  const { plane, host, port, tls, now, log } = options
  const stop = new AbortController()
  const counters = createCounters()
  const failed = (error: unknown) => log('error', 'request failed', { why: traceOf(error) })
  const server: ControlServer = { ...options, stopping: stop.signal, secure: tls !== undefined, counters }
  const app = lazy(async () => (await import('./control-api.ts')).controlApi(server, failed))
  const findCaller = createFindCaller({
    access: plane.access,
    seed: createSeedAccess({
      secret: options.sharedSecret,
      from: options.compatFrom,
      refused: (address, why) => log('warn', 'shared secret refused', { address, why }),
    }),
    now,
  })
  const state = { isWarm: false }
  const listening = serveApi({
    app: app.get,
    simple: { '/health': () => healthOf(options, stop.signal) },
    hostname: host,
    port,
    tls,
    proxies: options.allowedHosts,
    names: namesOf(host),
    cookie: (port) => `braidclaw_control_${port}`,
    callerOf(...asked) {
      if (!state.isWarm) warmUp()
      state.isWarm = true
      return findCaller(...asked)
    },
    keyOf: callerKey,
    rate,
    maxRequests,
    maxBodyBytes: bodyBytes.model + 65_536,
    bodyLimits: (path, isKnown) => ({ ...limits, anyText: isLog(path), maxBytes: isKnown ? bodyBytes.known : bodyBytes.unknown }),
    raw: options.models,
    idempotency: createIdempotency(options.replies),
    errorFields: () => ({}),
    hints: {
      token: 'an operator makes one: braidclaw control key new AGENT, or braidclaw control operator new NAME',
      host: 'name it with --allow-host',
    },
    answered: counters.answered,
    failed,
    now,
  })
  return {
    url: localUrl({ host, port: listening.port, tlsCert: tls?.cert }),
    port: listening.port,
    counters,
    async close(ms) {
      stop.abort()
      await listening.finish(ms)
    },
  }
}

/** Recognizes log uploads, which keep whatever a program prints. */
function isLog(path: string): boolean {
  return /\/runs\/[^/]+\/log$/.test(path)
}

/** Answers without the database's pool, so also when every other request waits. */
function healthOf({ version, isReachable }: ServeControlOptions, stopping: AbortSignal): Response {
  const ok = isReachable() && !stopping.aborted
  return simpleJson({ ok, version, kind: 'control' }, ok ? 200 : 503)
}
