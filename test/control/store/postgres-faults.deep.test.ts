import { describe, expect, test } from 'bun:test'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import type { Store } from '../../../src/control/contract/store-port.ts'
import { nextId, queryNumber } from '../../../src/control/plane/command.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { cleaned } from '../support/cleaned.ts'
import { hasPostgres } from '../support/postgres.ts'
import { startedPostgres } from '../support/postgres-of-file.ts'
import { anna, draft, runCaller, taskPlane } from '../support/task-plane.ts'

const quiet = () => {}

describe.if(hasPostgres())('PostgreSQL', () => {
  const server = startedPostgres()
  const cleanups = cleaned()

  async function opened(url: string, now?: () => number): Promise<Store> {
    const store = await openPostgres({ url, log: quiet, ...(now ? { now } : {}) })
    cleanups.push(() => store.close())
    return store
  }

  const settings = (store: Store) => store.read(() => queryNumber('SELECT count(*) AS value FROM settings'))

  function write(store: Store, name: string): Promise<void> {
    return store.write(function* () {
      yield* nextId('runs')
      yield ['INSERT INTO settings (name, value) VALUES (?, ?)', [name, 'x']]
    })
  }

  test('two daemons open an empty database at once, and give out each task once', async () => {
    const url = await server().createDatabase()
    const planes = await Promise.all((await Promise.all([opened(url), opened(url)])).map((store) => taskPlane(store, { now: Date.now })))
    const [one, two] = planes
    if (!one || !two) throw new Error('no planes')
    for (let at = 0; at < 8; at += 1) await one.addAgent(`w${at}`)
    await Promise.all(planes.flatMap((plane) => Array.from({ length: 30 }, () => plane.tasks.create(anna, draft()))))
    const claimed: string[] = []
    await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const plane = at % 2 ? one : two
        for (let claim = await plane.claim(`w${at}`); claim; claim = await plane.claim(`w${at}`)) {
          claimed.push(claim.task.task_id)
          await plane.complete(runCaller(claim, `w${at}`), claim.task.task_id)
        }
      }),
    )
    expect(claimed).toHaveLength(60)
    expect(new Set(claimed).size).toBe(60)
    const events = await one.all('SELECT id FROM events ORDER BY id')
    expect(events.map((row) => row.id)).toEqual(Array.from({ length: 180 }, (_, at) => at + 1))
  })

  test('a task that one daemon creates wakes a claim that waits at another one, and soon so when the announcement is lost', async () => {
    const url = await server().createDatabase()
    const [one, two] = [await taskPlane(await opened(url), { now: Date.now }), await taskPlane(await opened(url), { now: Date.now })]
    await one.addAgent('a1')
    const waitFor = async (create: () => Promise<unknown>) => {
      const waiting = two.claim('a1', { wait_ms: 25_000 })
      await Bun.sleep(100)
      await create()
      const begun = performance.now()
      expect(await waiting).toBeDefined()
      return performance.now() - begun
    }
    // Without the announcement each takes the second until the next look; on a busy machine the first may too.
    const times: number[] = []
    while (times.length < 5 && !times.some((took) => took < 700)) times.push(await waitFor(() => one.tasks.create(anna, draft())))
    expect(Math.min(...times)).toBeLessThan(700)
    // The listening connection is gone exactly while the task is announced.
    expect(
      await waitFor(async () => {
        await server().cutConnections(url)
        await one.tasks.create(anna, draft())
      }),
    ).toBeLessThan(20_000)
  }, 120_000)

  test('connections that are cut lose nothing that was acknowledged', async () => {
    const url = await server().createDatabase()
    const store = await opened(url)
    let isDone = false
    const cutting = (async () => {
      for (let cuts = 0; cuts < 6; cuts += 1) {
        await Bun.sleep(60)
        await server().cutConnections(url)
      }
      isDone = true
    })()
    const [acknowledged, unknown]: [string[], string[]] = [[], []]
    const writer = async (name: string) => {
      for (let [count, mine] = [0, 0]; !isDone || mine < 25; count += 1) {
        const key = `${name}-${count}`
        await write(store, key).then(
          () => {
            mine += 1
            acknowledged.push(key)
          },
          () => void unknown.push(key),
        )
      }
    }
    await Promise.all([cutting, ...['a', 'b', 'c', 'd'].map(writer)])
    const kept = await settings(store)
    expect(acknowledged.length).toBeGreaterThan(80)
    expect(kept).toBeGreaterThanOrEqual(acknowledged.length)
    expect(kept).toBeLessThanOrEqual(acknowledged.length + unknown.length)
    expect(await store.read(() => queryNumber("SELECT value FROM sequences WHERE name = 'runs'"))).toBe(kept)
  }, 120_000)

  test('a server that is killed and started again is used again, and meanwhile requests are refused in time', async () => {
    const store = await opened(await server().createDatabase())
    await write(store, 'before')
    await server().stop('immediate')
    const begun = performance.now()
    const refusal = await write(store, 'meanwhile').catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(PlaneRefusal)
    expect(performance.now() - begun).toBeLessThan(40_000)
    expect(store.reachable).toBe(false)
    const late = write(store, 'late').then(
      () => 'written',
      () => 'refused',
    )
    await server().start()
    expect(await late).toBe('written')
    await write(store, 'after')
    expect(store.reachable).toBe(true)
    expect(await settings(store)).toBe(3)
  }, 120_000)

  test('daemons whose clocks differ by ten minutes agree on a lease', async () => {
    const url = await server().createDatabase()
    const fast = () => Date.now() + 600_000
    const [one, two] = [await taskPlane(await opened(url), { now: Date.now }), await taskPlane(await opened(url, fast), { now: fast })]
    await one.addAgent('a1')
    await one.addAgent('a2')
    await one.tasks.create(anna, draft())
    const run = runCaller(await one.mustClaim())
    expect(await two.claim('a2')).toBeUndefined()
    expect(Date.parse((await two.tasks.beat(run, 'TASK-001')).lease_until) - Date.now()).toBeLessThan(62_000)
    await one.complete(run, 'TASK-001')
  })

  test('only one daemon at a time does what is exclusive, and another one after it died', async () => {
    const url = await server().createDatabase()
    const [one, two] = [await opened(url), await opened(url)]
    const { promise, resolve } = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const first = one.withLock('schedules', () => {
      held.resolve()
      return promise
    })
    await held.promise
    expect(await two.withLock('schedules', async () => 'done')).toBeUndefined()
    expect(await two.withLock('other', async () => 'done')).toBe('done')
    resolve()
    await first
    expect(await two.withLock('schedules', async () => 'done')).toBe('done')
  })
})
