/** Runs the same tests on SQLite and, in the deep tier, on a real PostgreSQL: each test opens an empty store of its own. */

import { describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine, Store } from '../../../src/control/contract/store-port.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { isDeep } from '../../support/tier.ts'
import { cleaned } from './cleaned.ts'
import { type Databases, hasPostgres } from './postgres.ts'
import { postgresOfRun } from './postgres-of-file.ts'

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

  if (!isDeep) return
  describe.if(hasPostgres())(`${name} (postgres)`, () => {
    const server = postgresOfRun()
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

async function migrated(server: Databases): Promise<string> {
  const url = await server.createDatabase()
  await (await openPostgres({ url, log: quiet })).close()
  return url
}
