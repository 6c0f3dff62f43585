/** A connection to PostgreSQL that is cut while COMMIT is under way: the write happens once and is answered, and no secret is made that nobody saw. */

import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import type { Socket } from 'bun'
import { until } from '../../support/until.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabases } from '../support/postgres-of-file.ts'

/** `before`: COMMIT never reaches the server. `after`: it does, and its answer is lost. */
type Cut = 'before' | 'after'

/** `commit`: the name of the prepared COMMIT on this connection. */
type Near = { far: ReturnType<typeof connect>; commit?: string | undefined }

/** A relay that ends a connection at its next COMMIT, and may refuse new ones from then on. */
function relayTo(url: string) {
  const { hostname, port } = new URL(url)
  const relay: { cut: Cut | undefined; cuts: number; isDown: boolean; staysDown: boolean } = {
    cut: undefined,
    cuts: 0,
    isDown: false,
    staysDown: false,
  }
  const listener = Bun.listen<Near>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(near) {
        if (relay.isDown) return void near.terminate()
        const far = connect(Number(port), hostname)
        far.on('data', (bytes) => void near.write(bytes))
        for (const event of ['close', 'error']) far.on(event, () => near.terminate())
        near.data = { far }
      },
      data(near: Socket<Near>, bytes) {
        const { far } = near.data
        const text = Buffer.from(bytes).toString('latin1')
        near.data.commit ??= /P[\s\S]{4}(\w+)\0COMMIT\0/.exec(text)?.[1]
        const { cut } = relay
        if (cut === undefined || !near.data.commit || !text.includes(`\0${near.data.commit}\0`)) return void far.write(bytes)
        relay.cut = undefined
        relay.cuts += 1
        relay.isDown = relay.staysDown
        far.removeAllListeners('data')
        if (cut === 'before') far.destroy()
        else far.write(bytes, () => setTimeout(() => far.end(), 50))
        near.terminate()
      },
      close: (near) => void near.data?.far?.end(),
    },
  })
  const through = new URL(url)
  through.port = String(listener.port)
  return Object.assign(relay, { url: through.href, [Symbol.dispose]: () => listener.stop(true) })
}

describe.if(hasPostgres())('a cut COMMIT', () => {
  const server = sharedDatabases()
  const titles = async (control: ControlUnderTest) =>
    (await control.client().tasks.list({ limit: 100 })).tasks.map(({ title }) => title).toSorted()

  async function given(): Promise<AsyncDisposable & { relay: ReturnType<typeof relayTo>; control: ControlUnderTest }> {
    const relay = relayTo(await server().createDatabase())
    const control = await controlServer({ tickMs: 3_600_000, env: { CONTROLPLANE_DATABASE_URL: relay.url } })
    return {
      relay,
      control,
      async [Symbol.asyncDispose]() {
        await control[Symbol.asyncDispose]()
        relay[Symbol.dispose]()
      },
    }
  }

  test('is answered as what became of it: each task exists once, each key was shown', async () => {
    await using at = await given()
    const { relay, control } = at
    await control.addAgent('a1')
    const shown = new Set((await control.client().fleet.keys('a1')).map(({ key_id }) => key_id))
    for (const cut of ['before', 'after', 'before', 'after'] as const) {
      relay.cut = cut
      expect(await control.ask('tasks', { body: { title: `${shown.size} ${cut}`, role: 'a' } })).toMatchObject({ status: 201 })
      relay.cut = cut
      const made = await control.ask('agents/a1/keys', { method: 'POST' })
      expect(made.status).toBe(201)
      shown.add(made.body.key_id)
      expect((await control.ask('whoami', { token: made.body.key })).status).toBe(200)
    }
    expect(relay.cuts).toBe(8)
    expect(await titles(control)).toEqual(['1 before', '2 after', '3 before', '4 after'])
    expect((await control.client().fleet.keys('a1')).map(({ key_id }) => key_id).toSorted()).toEqual([...shown].toSorted())
  }, 60_000)

  test('whose fate cannot be asked in time is 503, and the secret that nobody saw is revoked as soon as it can be', async () => {
    await using at = await given()
    const { relay, control } = at
    await control.addAgent('a1')
    Object.assign(relay, { cut: 'after', staysDown: true })
    expect((await control.ask('agents/a1/keys', { method: 'POST' })).status).toBe(503)
    relay.isDown = false
    const keys = await until(async () => {
      const found = await control
        .client()
        .fleet.keys('a1')
        .catch(() => [])
      return found.length === 2 && found.some(({ revoked_at }) => revoked_at !== null) && found
    })
    expect(keys.filter(({ revoked_at }) => revoked_at === null)).toHaveLength(1)
  }, 60_000)

  test('a client that leaves before its key is shown leaves no key in force', async () => {
    await using at = await given()
    const { control } = at
    await control.addAgent('a1')
    const leaving = new AbortController()
    await using sql = new Bun.SQL({ url: at.relay.url, max: 1 })
    const [locked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = sql.begin(async (tx) => {
      await tx.unsafe("SELECT * FROM agents WHERE id = 'a1' FOR UPDATE")
      locked.resolve()
      await held.promise
    })
    await locked.promise
    const asked = control.ask('agents/a1/keys', { method: 'POST', signal: leaving.signal }).catch(() => undefined)
    await until(async () => waits(at.relay.url))
    leaving.abort()
    await asked
    held.resolve()
    await holding
    const keys = await until(async () => {
      const found = await control.client().fleet.keys('a1')
      return found.length === 2 && found.every(({ revoked_at }, at) => at === 0 || revoked_at !== null) && found
    })
    expect(keys.filter(({ revoked_at }) => revoked_at === null)).toHaveLength(1)
  }, 60_000)
})

/** Tells whether a statement of the database waits for a lock. */
async function waits(url: string): Promise<boolean> {
  await using sql = new Bun.SQL({ url, max: 1 })
  const [row] = await sql.unsafe(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  )
  return row.n > 0
}
