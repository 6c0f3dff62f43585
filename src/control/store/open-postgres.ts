/** Opens the control plane's tables in PostgreSQL, for several daemons at a time. */

import { atAsyncEnd, atEnd, errorText } from '../../kit/errors.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Dialect, Store } from '../contract/store-port.ts'
import { announce, createListeners, exclusive } from './batch-marks.ts'
import {
  asRefusal,
  createSession,
  type PostgresConnection,
  type PostgresTarget,
  postgresFailure,
  type ReservedConnection,
  type Session,
} from './postgres-session.ts'
import { watchPostgres } from './postgres-watch.ts'
import { createPostgresWriter } from './postgres-writer.ts'
import { bringUpToDate } from './schema.ts'
import { createWriteHealth, emptyWrite } from './write-health.ts'

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
  /** The clock of this process, which the watch compares with the database's. */
  readonly now?: () => number
  readonly random?: () => number
}

const dialect: Dialect = { engine: 'postgres', forUpdate: ' FOR UPDATE' }
const CHANNEL = 'braidclaw_control'

/** @throws PlaneRefusal `unavailable` when PostgreSQL does not answer or has newer tables */
export async function openPostgres({ url, log, now = Date.now, random = Math.random }: PostgresOptions): Promise<Store> {
  const target = targetOf(url)
  const textOf = createTextOf()
  const listeners = createListeners()
  const origin = crypto.randomUUID().slice(0, 8)
  const pools = createPostgresPools({
    ...{ url, target, channel: CHANNEL, received: (payload) => received(payload), listening: listeners.notifyAll },
  })
  const health = createWriteHealth({
    log,
    async probe({ details }) {
      // A session keeps the default that it began with.
      if (details.storage === 'read_only') pools.renew(['writing', 'watching'])
      await emptyWrite(store.write)
    },
  })
  const readOnly = new PlaneRefusal('unavailable', `database ${target.name} is read-only`, { storage: 'read_only' })
  const watch = watchPostgres({
    ...{ sql: pools.watching, now, log, missed: listeners.notifyAll, silent: pools.renew, readOnly: () => health.failed(readOnly) },
  })

  const writer = createPostgresWriter({
    reserved: (work) =>
      pools.reserved('writing', (connection) => work({ session: () => createSession(connection, textOf), commit: connection.commit })),
    notify: (own, topics) => {
      if (topics.size > 0) own.send('SELECT pg_notify(?, ?)', [CHANNEL, [origin, ...topics].join(' ')])
    },
    notifyListeners: listeners.notify,
    random,
  })

  const withRefusals = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      const value = await work()
      watch.answered()
      return value
    } catch (error) {
      const refusal = asRefusal(error, target)
      if (refusal instanceof PlaneRefusal && refusal.details.storage === 'away') watch.failed()
      throw refusal
    }
  }

  /** Runs a command without a transaction while it sends one statement, which sees one state by itself; a second statement starts it again in a transaction. */
  async function readOnce<T>(command: () => Command<T>): Promise<T> {
    const quick = command()
    const first = quick.next([])
    if (first.done) return first.value
    const second = quick.next(await createSession(pools.reading, textOf).rows(...first.value))
    if (second.done) return second.value
    return await pools.reserved('reading', (connection) => snapshot(createSession(connection, textOf), command()))
  }

  /** Reads again after a cut connection, but not for a server that has been silent for long. */
  async function read<T>(command: () => Command<T>): Promise<T> {
    const end = performance.now() + 1_000
    for (let wait = 20; ; wait *= 4) {
      try {
        return await readOnce(command)
      } catch (error) {
        if (postgresFailure(error)?.kind !== 'away' || performance.now() + wait > end) throw error
        await Bun.sleep(wait)
      }
    }
  }

  async function snapshot<T>(own: Session, command: Command<T>): Promise<T> {
    own.send('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await using _end = atAsyncEnd(() => own.rows('COMMIT'))
    return await own.follow(command)
  }

  async function withLock<T>(lock: string, work: () => Promise<T>): Promise<T | undefined> {
    return await pools.reserved('locking', async (connection) => {
      const own = createSession(connection, textOf)
      const [row] = await own.rows('SELECT CASE WHEN pg_try_advisory_lock(3100002, hashtext(?)) THEN 1 ELSE 0 END AS taken', [lock])
      if (row?.taken !== 1) return undefined
      await using _end = atAsyncEnd(() => own.rows('SELECT pg_advisory_unlock(3100002, hashtext(?))', [lock]).catch(() => undefined))
      return await work()
    })
  }

  function received(payload: string): void {
    const [from, ...topics] = payload.split(' ')
    watch.announced()
    if (from !== origin) listeners.notify(topics)
  }

  async function open(): Promise<void> {
    await writer.write(() => bringUpToDate('postgres'))
    await pools.listen()
    await watch.start()
  }

  async function close(): Promise<void> {
    watch.stop()
    health.stop()
    await writer.idle()
    await pools.close(1)
  }

  await withRefusals(open).catch(async (error: unknown) => {
    await pools.close(0)
    throw error
  })

  const store: Store = {
    dialect,
    write: (command, batchKey) => health.watched(() => withRefusals(() => writer.write(command, batchKey))),
    read: (command) => withRefusals(() => read(command)),
    listen: listeners.listen,
    announce,
    exclusive,
    withLock: (lock, work) => withRefusals(() => withLock(lock, work)),
    skewMs: watch.skewMs,
    get reachable() {
      return watch.isReachable() && health.isWell()
    },
    close,
  }
  return store
}

/** Returns the URL for messages. */
function targetOf(url: string): PostgresTarget {
  const parsed = URL.parse(url)
  if (!parsed) throw new PlaneRefusal('bad_request', 'the database URL must look like postgres://user:password@host:5432/database')
  const { protocol, host, pathname, password, searchParams } = parsed
  const secrets = [
    password,
    new URLSearchParams(`p=${password.replaceAll('+', '%2B')}`).get('p') ?? '',
    ...['password', 'sslpassword'].map((name) => searchParams.get(name) ?? ''),
  ]
  return {
    name: `${protocol}//${host}${pathname}`,
    hide: (text) => secrets.reduce((hidden, secret) => (secret === '' ? hidden : hidden.replaceAll(secret, '[password]')), text),
  }
}

/** Filters of lists make many texts; after this many each further text is rewritten every time. */
const mostTexts = 1_000

export function createTextOf(): (sql: string) => string {
  const texts = new Map<string, string>()
  return (sql) => {
    const known = texts.get(sql)
    if (known !== undefined) return known
    const text = numbered(sql)
    if (texts.size < mostTexts) texts.set(sql, text)
    return text
  }
}

/** Numbers each `?` that is not between quotes. */
function numbered(sql: string): string {
  let count = 0
  return sql.replace(/'(?:[^']|'')*'|\?/g, (match) => {
    if (match !== '?') return match
    count += 1
    return `$${count}`
  })
}

type PostgresPoolsOptions = {
  readonly url: string
  readonly target: PostgresTarget
  readonly channel: string
  readonly received: (payload: string) => void
  /** Called after each connection, because announcements before it are lost. */
  readonly listening: () => void
}

/**
 * A daemon that stops in the middle of a transaction blocks the others for this long. The kernel of the database's machine notices when a
 * daemon's machine or network fails.
 */
const limits = {
  ...{ idle_in_transaction_session_timeout: 5_000, lock_timeout: 15_000, statement_timeout: 30_000 },
  ...{ tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3, tcp_user_timeout: 20_000 },
  application_name: 'braidclaw-control',
}

const againMs = 500

/** Each purpose has connections of its own, so that no command waits for a connection while it has another one. */
const sizes = { reading: 6, writing: 1, locking: 2, watching: 2 }
type Pools = Readonly<Record<keyof typeof sizes, Bun.SQL>>

/** Replaces all connections when no answers arrive over them. @throws PlaneRefusal about a parameter in the URL */
function createPostgresPools({ url, target, channel, received, listening }: PostgresPoolsOptions) {
  const pool = (which: keyof Pools) => createPool({ url, target, max: sizes[which] })
  const state = {
    pools: { reading: pool('reading'), writing: pool('writing'), locking: pool('locking'), watching: pool('watching') } as Pools,
    isListening: false,
  }

  /** Sends single statements; the pool chooses a connection. */
  const through = (which: keyof Pools): PostgresConnection => ({ unsafe: (text, values) => state.pools[which].unsafe(text, values) })

  /** Reserves one connection of a pool for `work`. */
  async function reserved<T>(which: keyof Pools, work: (connection: ReservedConnection) => Promise<T>): Promise<T> {
    const connection = await state.pools[which].reserve()
    using _end = atEnd(() => connection.release())
    return await work({ unsafe: (text, values) => connection.unsafe(text, values), commit: () => connection`COMMIT` })
  }

  async function listen(): Promise<void> {
    await state.pools.watching.listen(channel, received, listening)
    state.isListening = true
  }

  /** Tries until it succeeds or these connections are replaced as well; from then on Bun reconnects by itself. */
  async function listenAgain(own: Pools): Promise<void> {
    while (state.pools === own && !(await own.watching.listen(channel, received, listening).catch(() => undefined)))
      await Bun.sleep(againMs)
  }

  /** Ends the connections of these pools, or of all, so that every waiting query fails, and opens new ones. */
  function renew(which: readonly (keyof Pools)[] = ['reading', 'writing', 'locking', 'watching']): void {
    const old = which.map((name) => state.pools[name])
    state.pools = { ...state.pools, ...Object.fromEntries(which.map((name) => [name, pool(name)])) }
    void closeAll(old, 0)
    if (state.isListening) void listenAgain(state.pools)
  }

  async function close(seconds: number): Promise<void> {
    const last = state.pools
    state.pools = { ...last }
    await closeAll(Object.values(last), seconds)
  }

  return { reading: through('reading'), watching: through('watching'), reserved, listen, renew, close }
}

function createPool({ url, target, max }: Pick<PostgresPoolsOptions, 'url' | 'target'> & { readonly max: number }): Bun.SQL {
  try {
    return new Bun.SQL({ url, max, bigint: true, connectionTimeout: 5, connection: limits })
  } catch (error) {
    const why = target.hide(errorText(error))
    throw new PlaneRefusal('bad_request', `CONTROLPLANE_DATABASE_URL (${target.name}): ${why}; correct what stands behind "?" in it`)
  }
}

async function closeAll(pools: readonly Bun.SQL[], timeout: number): Promise<void> {
  await Promise.all(pools.map((sql) => sql.close({ timeout }).catch(() => undefined)))
}
