/** Gives the tests of a file or a `describe` a PostgreSQL: the one of the run, or one that they may kill. */

import { afterAll, beforeAll } from 'bun:test'
import { careless, type Databases, type Postgres, sharedPostgres, startPostgres } from './postgres.ts'

/** Returns the server of the run, or one of this file where it runs by hand; the databases are dropped after the last test. */
export function sharedDatabases(): () => Databases {
  const state: { server?: Databases & { readonly close: () => Promise<unknown> } } = {}
  beforeAll(async () => {
    const shared = sharedPostgres()
    state.server = shared === undefined ? await ofFile() : droppingIn(shared)
  }, 40_000)
  afterAll(() => state.server?.close())
  return () => {
    if (state.server === undefined) throw new Error('PostgreSQL has not been started')
    return state.server
  }
}

async function ofFile() {
  const own = await startPostgres({ settings: careless })
  return { ...own, close: own.remove }
}

function droppingIn(shared: Databases) {
  const made: string[] = []
  async function createDatabase(how?: Parameters<Databases['createDatabase']>[0]): Promise<string> {
    const url = await shared.createDatabase(how)
    made.push(url)
    return url
  }
  return { ...shared, createDatabase, close: () => Promise.all(made.map(shared.dropDatabase)) }
}

/** Returns a server of the file's own, for tests that kill, stop or fill it. */
export function startedPostgres(): () => Postgres {
  const started: { postgres?: Postgres } = {}
  beforeAll(async () => {
    started.postgres = await startPostgres()
  }, 40_000)
  afterAll(() => started.postgres?.remove())
  return () => {
    if (!started.postgres) throw new Error('PostgreSQL has not been started')
    return started.postgres
  }
}
