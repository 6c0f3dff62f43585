/** Opens a control plane: its database, its plane, its port and its clock; the daemon of "braidclaw control serve". */

import { join } from 'node:path'
import { version } from '../../../package.json'
import type { KeyedRequest, ReplyState, ReplyStore } from '../../http/contract.ts'
import type { RawAnswers } from '../../http/serve-api.ts'
import { sleep } from '../../kit/abort.ts'
import { traceOf } from '../../kit/errors.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Plane } from '../contract/plane.ts'
import type { BatchKey, Command, Row, Store } from '../contract/store-port.ts'
import { callHostd, listOps } from '../hostd/client.ts'
import { createHostdProxy } from '../hostd/hostd-proxy.ts'
import { createLlmPassThrough } from '../llm/pass-through.ts'
import { upstreamsOf } from '../llm/upstream-call.ts'
import { createPlane } from '../plane/create-plane.ts'
import { openPostgres } from '../store/open-postgres.ts'
import { openSqlite } from '../store/open-sqlite.ts'
import { type ControlEnvironment, type ControlSettings, controlSettings } from './control-options.ts'
import { type ServeControlOptions, serveControl } from './serve-control.ts'

/**
 * Defaults: `host` 127.0.0.1; `port` CONTROLPLANE_API_PORT, or 3100; `hostd` that of CONTROLPLANE_HOSTD_SOCKET; `models` the upstreams of the
 * environment.
 */
export type OpenControlOptions = Partial<
  Pick<ServeControlOptions, 'host' | 'port' | 'tls' | 'allowedHosts' | 'compatFrom' | 'hostd' | 'models'>
> & {
  readonly env: ControlEnvironment
  /** The home of this user's BraidClaw; SQLite uses its folder `control`. */
  readonly home: string
  readonly log: ServeControlOptions['log']
  readonly now?: () => number
  readonly random?: () => number
  readonly tickMs?: number
}

export type OpenedControl = {
  readonly url: string
  readonly port: number
  readonly plane: Plane
  readonly engine: Store['dialect']['engine']
  /** Answers waiting claims, ends streams, gives running requests some seconds, and then closes the database. */
  close(): Promise<void>
}

/** Running requests may take this long to end after the stop. */
const finishMs = 3_000

/** @throws Error about a setting or the port. @throws PlaneRefusal about the database */
export async function openControl(options: OpenControlOptions): Promise<OpenedControl> {
  const settings = controlSettings(options.env)
  const { now = Date.now, random = Math.random, log } = options
  const store = await openStore(settings, options)
  try {
    const plane = createPlane({
      ...{ store, now, random, log },
      randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
      leaseSeconds: settings.leaseSeconds,
      approvalHours: settings.approvalHours,
      retentionDays: settings.retentionDays,
      openTasksOfAgent: settings.openTasksOfAgent,
      mostTokensOfReport: settings.mostTokensOfReport,
    })
    if (settings.operatorToken !== undefined) await plane.access.firstOperator('environment', settings.operatorToken)
    const served = serveControl({
      ...{ plane, version, now, log },
      hostd: options.hostd ?? createHostdProxy({ socket: settings.hostdSocket, plane, call: callHostd, list: listOps, now }),
      models: options.models ?? modelsOf(options, plane),
      tls: options.tls,
      host: options.host ?? '127.0.0.1',
      port: options.port ?? settings.port,
      allowedHosts: options.allowedHosts ?? [],
      sharedSecret: settings.sharedSecret,
      compatFrom: options.compatFrom ?? [],
      replies: createReplyStore({ store, now, daemon: crypto.randomUUID() }),
      isReachable: () => store.reachable,
    })
    const ticker = startTicker(plane.tick, options.tickMs ?? 1_000, (error) => log('error', 'tick failed', { why: traceOf(error) }))
    return {
      ...{ url: served.url, port: served.port, plane, engine: store.dialect.engine },
      async close() {
        await served.close(finishMs)
        await ticker.stop()
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openStore({ databaseUrl }: ControlSettings, { home, log, now, random }: OpenControlOptions): Promise<Store> {
  if (databaseUrl === undefined) return openSqlite({ path: join(home, 'control', 'control.sqlite'), log })
  return openPostgres({ url: databaseUrl, log, now, random })
}

function modelsOf({ env, log, now = Date.now }: OpenControlOptions, plane: Plane): RawAnswers {
  const fetchFor = (baseUrl: string) => createProviderFetch({ baseUrl })
  return createLlmPassThrough({ plane, upstreams: upstreamsOf(env), fetchFor, sleep: Bun.sleep, now, log })
}

/** Runs ticks, one at a time. `stop` resolves when none is running any more. */
function startTicker(tick: () => Promise<void>, everyMs: number, failed: (error: unknown) => void) {
  const over = new AbortController()
  const running = (async () => {
    while (!over.signal.aborted) {
      await sleep(everyMs, over.signal)
      if (!over.signal.aborted) await tick().catch(failed)
    }
  })()
  return {
    stop(): Promise<void> {
      over.abort()
      return running
    },
  }
}

type ReplyStoreOptions = {
  readonly store: Pick<Store, 'write' | 'dialect'>
  readonly now: () => number
  /** Names this daemon among those that share the database. */
  readonly daemon: string
}

/** Another daemon on the same database may take this long to answer. */
const answeringMs = 120_000
/** The row of a request that is being answered has this status; its `body` names the daemon. */
const answering = 0

/** Keeps the answers to requests with an Idempotency-Key in the table `replies`; the plane forgets them after a day. */
export function createReplyStore({ store, now, daemon }: ReplyStoreOptions): ReplyStore {
  const stateOf = ({ digest, status, body, at }: Row, name: KeyedRequest): ReplyState => {
    if (digest !== name.digest) return { state: 'other' }
    if (status !== answering) return { state: 'done', reply: { status: Number(status), ...typeAndBody(String(body)) } }
    if (body === daemon) return { state: 'here' }
    // With SQLite there is one daemon at a time, so the request of another one ended with it.
    const isLost = store.dialect.engine === 'sqlite' || now() - Number(at) > answeringMs
    return { state: isLost ? 'lost' : 'elsewhere' }
  }

  function* begin({ owner, key, digest }: KeyedRequest): Command<ReplyState> {
    const values = [owner, key, digest, answering, daemon, now()]
    const inserted = yield [
      'INSERT INTO replies (owner, key, digest, status, body, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (owner, key) DO NOTHING RETURNING key',
      values,
    ]
    if (inserted.length > 0) return { state: 'new' }
    const [row] = yield ['SELECT digest, status, body, at FROM replies WHERE owner = ? AND key = ?', [owner, key]]
    return row ? stateOf(row, { owner, key, digest }) : { state: 'elsewhere' }
  }

  return {
    begin: (name) => store.write(() => begin(name), replyBatchKey(name)),
    finish: (name, { status, type, body }) =>
      store.write(function* () {
        yield ['UPDATE replies SET status = ?, body = ? WHERE owner = ? AND key = ?', [status, `${type}\n${body}`, name.owner, name.key]]
      }, replyBatchKey(name)),
    forget: (name) =>
      store.write(function* () {
        yield ['DELETE FROM replies WHERE owner = ? AND key = ? AND status = ?', [name.owner, name.key, answering]]
      }, replyBatchKey(name)),
  }
}

function replyBatchKey({ owner, key }: Pick<KeyedRequest, 'owner' | 'key'>): BatchKey {
  return { kind: 'reply', key: `${owner} ${key}` }
}

function typeAndBody(stored: string): { readonly type: string; readonly body: string } {
  const at = stored.indexOf('\n')
  return { type: stored.slice(0, at), body: stored.slice(at + 1) }
}
