/** PostgreSQL goes away in ways that end no connection: nothing acknowledged is lost, nothing happens twice, and requests are refused in time. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import type { Command, Store } from '../../../src/control/contract/store-port.ts'
import { nextId } from '../../../src/control/plane/command.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { smallDisk } from '../../crash/small-disk.ts'
import { given } from '../../support/needs.ts'
import { cleaned } from '../support/cleaned.ts'
import { hasPostgres } from '../support/postgres.ts'
import { linkTo } from '../support/postgres-link.ts'
import { startedPostgres } from '../support/postgres-of-file.ts'
import { all } from '../support/task-plane.ts'

const quiet = () => {}
const mountable = given(process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success, 'root')

describe.if(hasPostgres())('PostgreSQL that is away', () => {
  const server = startedPostgres()
  const cleanups = cleaned()

  async function opened(url: string): Promise<Store> {
    const store = await openPostgres({ url, log: quiet })
    cleanups.push(() => store.close())
    return store
  }

  function* keep(name: string, value = ''): Command<void> {
    yield* nextId('runs')
    yield ['INSERT INTO settings (name, value) VALUES (?, ?)', [name, value]]
  }

  /** Each name that is kept, and how many runs were counted with them: both or none. */
  async function kept(store: Store): Promise<ReadonlySet<string>> {
    const rows = await store.read(() => all('SELECT name FROM settings'))
    const [counted] = await store.read(() => all("SELECT value FROM sequences WHERE name = 'runs'"))
    expect(Number(counted?.value ?? 0)).toBe(rows.length)
    return new Set(rows.map(({ name }) => String(name)))
  }

  /** Writes until it is ended; sorts the names by what became of them. */
  function writing(store: Store, value = '') {
    const [acknowledged, refused]: [Set<string>, Map<string, unknown>] = [new Set(), new Map()]
    const state = { isOver: false }
    const writer = async (own: number) => {
      for (let n = 0; !state.isOver; n += 1) {
        const name = `${own}-${n}`
        await store
          .write(() => keep(name, value))
          .then(
            () => acknowledged.add(name),
            (error: unknown) => refused.set(name, error),
          )
        await Bun.sleep(5)
      }
    }
    const done = Promise.all([0, 1, 2, 3].map(writer))
    const end = async () => {
      state.isOver = true
      await done
    }
    return { acknowledged, refused, end }
  }

  test('a link that is cut: requests are refused with a sentence, another daemon goes on, and with the link again everything works', async () => {
    const url = await server().createDatabase()
    const near = await opened(url)
    using link = linkTo(url)
    const far = await opened(link.url)
    const writer = writing(far)
    await until(() => writer.acknowledged.size >= 40)
    link.cut()
    // It may have held the lock when the link was cut: then the server takes it back.
    await near.write(() => keep('near'))
    await until(() => writer.refused.size >= 4)
    expect(far.reachable).toBe(false)
    for (const refusal of writer.refused.values()) expect(refusal).toBeInstanceOf(PlaneRefusal)
    const [first] = writer.refused.values()
    expect(String(first)).toMatch(/database postgres:.* does not answer .*; check that PostgreSQL runs/)
    expect(await far.read(() => all('SELECT 1 AS one')).catch((error: unknown) => error)).toBeInstanceOf(PlaneRefusal)

    const before = writer.acknowledged.size
    link.mend()
    await until(() => writer.acknowledged.size >= before + 20)
    await writer.end()
    expect(far.reachable).toBe(true)
    const names = await kept(near)
    for (const name of writer.acknowledged) expect(names).toContain(name)
    // What was announced reaches it over the new connections.
    const { promise, resolve } = Promise.withResolvers<void>()
    cleanups.push(far.listen('agents', resolve))
    await near.write(() => near.announce('agents'))
    await promise
  }, 90_000)

  test('a server that dies in the middle of a group: all of the group is written once it is back, and once', async () => {
    const store = await opened(await server().createDatabase())
    const state: { stopping?: Promise<void> } = {}
    function* whileItDies(): Command<void> {
      yield* keep('dying')
      state.stopping ??= server().stop('immediate')
      if (runs.push('dying') === 1) yield ['SELECT pg_sleep(20)']
    }
    const runs: string[] = []
    const group = [() => keep('before'), whileItDies, () => keep('after')].map((command) => store.write(command))
    await until(() => state.stopping !== undefined)
    await state.stopping
    await server().start()
    await Promise.all(group)
    expect(runs).toEqual(['dying', 'dying'])
    expect(await kept(store)).toEqual(new Set(['before', 'dying', 'after']))
  }, 60_000)

  test.if(mountable)(
    'a full disk: requests are refused with a sentence, reads go on, and with space again writes succeed',
    async () => {
      using disk = smallDisk(24_576)
      chmodSync(disk.path, 0o711)
      const folder = join(disk.path, 'tables')
      mkdirSync(folder, { mode: 0o700 })
      const store = await opened(await server().createDatabase({ folder }))
      const writer = writing(store, 'x'.repeat(1_500))
      await until(() => writer.acknowledged.size >= 20)
      disk.leave(100_000)
      await until(() => writer.refused.size >= 4)
      const [first] = writer.refused.values()
      expect(first).toBeInstanceOf(PlaneRefusal)
      expect(String(first)).toMatch(/cannot write .*(?:No space left|disk).*free disk space/i)
      expect(await store.read(() => all('SELECT 1 AS one'))).toEqual([{ one: 1 }])
      disk.leave(undefined)
      const before = writer.acknowledged.size
      await until(() => writer.acknowledged.size >= before + 20)
      await writer.end()
      expect(await kept(store)).toEqual(writer.acknowledged)
      await store.close()
      await server().stop('immediate')
      await server().start()
    },
    60_000,
  )
})

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 40_000; performance.now() < end && !holds(); await Bun.sleep(10));
  expect(holds()).toBe(true)
}
