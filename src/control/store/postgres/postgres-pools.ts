/** Keeps the connections to PostgreSQL, and gives them up for new ones when nothing comes back over them. */

import type { Connection, Reserved } from './postgres-session.ts'

export type PostgresPools = {
  /** For single statements; the pool chooses a connection. */
  readonly reading: Connection
  readonly watching: Connection
  /** Keeps one connection of a pool for `work`. */
  reserved<T>(which: 'reading' | 'writing' | 'locking', work: (connection: Reserved) => Promise<T>): Promise<T>
  listen(): Promise<void>
  /** Ends all connections, so that whoever waits for an answer gets an error, and opens new ones. */
  renew(): void
  close(seconds: number): Promise<void>
}

export type PostgresPoolsOptions = {
  readonly url: string
  readonly channel: string
  readonly heard: (payload: string) => void
  /** After each connection: whatever was announced meanwhile is lost. */
  readonly listening: () => void
}

/**
 * A daemon that stops in the middle of a transaction holds the others up for this long; one whose machine or network is gone is noticed by
 * the kernel of the database's.
 */
const limits = {
  ...{ idle_in_transaction_session_timeout: 5_000, lock_timeout: 15_000, statement_timeout: 30_000 },
  ...{ tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3, tcp_user_timeout: 20_000 },
  application_name: 'braidclaw-control',
}

const againMs = 500

/** Of their own each, so that no one waits for a connection while holding another one. */
const sizes = { reading: 6, writing: 1, locking: 2, watching: 2 }
type Pools = Readonly<Record<keyof typeof sizes, Bun.SQL>>

export function createPostgresPools({ url, channel, heard, listening }: PostgresPoolsOptions): PostgresPools {
  const pool = (max: number) => new Bun.SQL({ url, max, bigint: true, connectionTimeout: 5, connection: limits })
  const open = (): Pools => ({
    reading: pool(sizes.reading),
    writing: pool(sizes.writing),
    locking: pool(sizes.locking),
    watching: pool(sizes.watching),
  })
  const state = { pools: open(), isListening: false }

  const through = (which: keyof Pools): Connection => ({ unsafe: (text, values) => state.pools[which].unsafe(text, values) })

  async function reserved<T>(which: keyof Pools, work: (connection: Reserved) => Promise<T>): Promise<T> {
    const connection = await state.pools[which].reserve()
    try {
      return await work({ unsafe: (text, values) => connection.unsafe(text, values), commit: () => connection`COMMIT` })
    } finally {
      connection.release()
    }
  }

  async function listen(): Promise<void> {
    await state.pools.watching.listen(channel, heard, listening)
    state.isListening = true
  }

  /** Until it succeeds, or these connections are given up as well. From then on it goes on by itself. */
  async function listenAgain(own: Pools): Promise<void> {
    while (state.pools === own && !(await own.watching.listen(channel, heard, listening).catch(() => undefined))) await Bun.sleep(againMs)
  }

  function renew(): void {
    const old = state.pools
    state.pools = open()
    void closeAll(old, 0)
    if (state.isListening) void listenAgain(state.pools)
  }

  async function close(seconds: number): Promise<void> {
    const last = state.pools
    state.pools = { ...last }
    await closeAll(last, seconds)
  }

  return {
    reading: through('reading'),
    watching: through('watching'),
    reserved,
    listen,
    renew,
    close,
  }
}

async function closeAll(pools: Pools, timeout: number): Promise<void> {
  await Promise.all(Object.values(pools).map((sql) => sql.close({ timeout }).catch(() => undefined)))
}
