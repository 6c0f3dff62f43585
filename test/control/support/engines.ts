/** Runs the same tests on SQLite and, in the deep tier, on a real PostgreSQL: each test opens an empty store of its own. */

import { describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command, Engine, Store } from '../../../src/control/contract/store-port.ts'
import { tables } from '../../../src/control/store/copy-store.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { isDeep } from '../../support/tier.ts'
import { cleaned } from './cleaned.ts'
import { hasPostgres } from './postgres.ts'
import { sharedDatabases } from './postgres-of-file.ts'

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
    const server = sharedDatabases()
    const cleanups = cleaned()
    const free: string[] = []
    tests(async () => {
      // Deleting the rows of a test takes a tenth of the time of making a database.
      const url = free.pop() ?? (await server().createDatabase())
      const store = await openPostgres({ url, log: quiet })
      cleanups.push(async () => {
        const isEmpty = await emptied(store)
        await store.close()
        if (isEmpty) free.push(url)
      })
      return store
    }, 'postgres')
  })
}

/** Deletes all rows but the version of the schema. @returns whether that was possible: a test may have closed the store */
async function emptied(store: Store): Promise<boolean> {
  const names = tables().flatMap(({ name }) => (name === 'schema_version' ? [] : [name]))
  function* remove(): Command<void> {
    for (const name of names) yield [`DELETE FROM ${name}`]
  }
  return store.write(remove).then(
    () => true,
    () => false,
  )
}
