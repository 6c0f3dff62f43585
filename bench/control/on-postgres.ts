/** What one, two and three daemons do on one PostgreSQL of this machine, each commit on disk. */

import { type Postgres, startPostgres } from '../../test/control/support/postgres.ts'
import { type Bench, type Figure, operatorToken } from './figures.ts'
import { createRate, newAgent, workRate } from './over-http.ts'

export async function daemonsOnPostgres(bench: Bench): Promise<readonly Figure[]> {
  const postgres = await startPostgres({ settings: ['fsync=on'] })
  try {
    const figures: Figure[] = []
    for (const daemons of [1, 2, 3]) figures.push(...(await ratesOf(bench, postgres, daemons)))
    return figures
  } finally {
    await postgres.remove()
  }
}

async function ratesOf({ onPostgres }: Bench, postgres: Postgres, daemons: number): Promise<readonly Figure[]> {
  const url = await postgres.createDatabase()
  await using running = new AsyncDisposableStack()
  const servers = []
  for (let at = 0; at < daemons; at++) servers.push(running.use(await onPostgres(url)))
  const [first] = servers
  if (!first) return []
  const key = await newAgent(first, 'w0')
  // Once to warm up.
  await createRate(servers, operatorToken)
  const created = await createRate(servers, operatorToken)
  const worked = await workRate(servers, key)
  const named = `PostgreSQL, ${daemons} ${daemons === 1 ? 'daemon' : 'daemons'}`
  return [
    { what: `${named}: creates at 16 clients`, value: created.perSecond, unit: '/s' },
    { what: '… claims with completion', value: worked.perSecond, unit: '/s' },
  ]
}
