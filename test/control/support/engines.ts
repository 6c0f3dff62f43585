/** Runs the same tests on SQLite and on a real PostgreSQL: each test opens an empty store of its own. */

import { afterAll, afterEach, beforeAll, describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine, Store } from '../../../src/control/contract/store-port.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { type Postgres, startPostgres } from './postgres.ts'

export type OpenStore = () => Promise<Store>

const quiet = () => {}

/** `tests` declares them; `open` may be called several times a test. Everything is closed and removed after each test. */
export function forEachEngine(name: string, tests: (open: OpenStore, engine: Engine) => void): void {
  describe(`${name} (sqlite)`, () => {
    const cleanups = cleaned()
    tests(async () => {
      const folder = mkdtempSync(join(tmpdir(), 'control-'))
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
      const store = await openSqlite({ path: join(folder, 'control.sqlite'), log: quiet })
      cleanups.push(() => store.close())
      return store
    }, 'sqlite')
  })

  describe(`${name} (postgres)`, () => {
    const server = startedPostgres()
    const cleanups = cleaned()
    const model: { url?: Promise<string> } = {}
    tests(async () => {
      // To copy the tables takes a third of the time of making them.
      model.url ??= migrated(server())
      const store = await openPostgres({ url: await server().createDatabase({ model: await model.url }), log: quiet })
      cleanups.push(() => store.close())
      return store
    }, 'postgres')
  })
}

async function migrated(server: Postgres): Promise<string> {
  const url = await server.createDatabase()
  await (await openPostgres({ url, log: quiet })).close()
  return url
}

/** One server for all tests of a `describe`. */
export function startedPostgres(settings?: readonly string[]): () => Postgres {
  const started: { postgres?: Postgres } = {}
  beforeAll(async () => {
    started.postgres = await startPostgres(settings)
  }, 40_000)
  afterAll(() => started.postgres?.remove())
  return () => {
    if (!started.postgres) throw new Error('PostgreSQL has not been started')
    return started.postgres
  }
}

/** Runs what is pushed after each test, last first. */
export function cleaned(): (() => unknown)[] {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const clean of cleanups.splice(0).reverse()) await clean()
  })
  return cleanups
}
