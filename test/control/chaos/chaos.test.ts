import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { cleaned, startedPostgres } from '../support/engines.ts'
import { type Checked, check } from './check.ts'
import { besiege } from './siege.ts'

/** `CHAOS_TASKS=10000` runs it in full, by hand; `CHAOS_MINUTES` limits the time of each engine. */
const tasks = Number(Bun.env.CHAOS_TASKS ?? 60)
const seed = Number(Bun.env.CHAOS_SEED ?? 14)
const isFull = tasks > 200
const mostMs = Bun.env.CHAOS_MINUTES ? Number(Bun.env.CHAOS_MINUTES) * 60_000 : isFull ? tasks * 200 : 110_000
const size = { tasks, realTasks: isFull ? tasks / 100 : 6, seed, everyMs: isFull ? 1_000 : 500, mostMs }
const quiet = () => {}

/** The full size reports what happened. */
function report(engine: string, ms: number, { figures }: Checked): void {
  if (isFull) console.log(`chaos (${engine}): ${tasks} tasks in ${(ms / 1_000).toFixed(1)} s: ${JSON.stringify(figures)}`)
}

describe('kills, stops and cuts at random', () => {
  const cleanups = cleaned()
  const server = startedPostgres(['fsync=off'])

  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), 'control-chaos-'))
    cleanups.push(() => rmSync(path, { recursive: true, force: true }))
    return path
  }

  test(
    'leave every invariant true on SQLite',
    async () => {
      const home = folder()
      const siege = await besiege({ ...size, folder: home, daemons: 1, workers: isFull ? 6 : 3 })
      const store = await openSqlite({ path: join(home, 'home', 'control', 'control.sqlite'), log: quiet })
      cleanups.push(() => store.close())
      const checked = await check(store, siege.worldFolder, tasks)
      report('sqlite', siege.ms, checked)
      // First: a task that has not ended breaks other invariants, by no fault of theirs.
      expect(siege.unfinished).toBe(0)
      expect(checked.problems).toEqual([])
    },
    size.mostMs + 60_000,
  )

  test(
    'leave every invariant true on PostgreSQL with two daemons',
    async () => {
      const url = await server().createDatabase()
      const siege = await besiege({ ...size, folder: folder(), daemons: 2, workers: isFull ? 6 : 3, postgres: { server: server(), url } })
      const store = await openPostgres({ url, log: quiet })
      cleanups.push(() => store.close())
      const checked = await check(store, siege.worldFolder, tasks)
      report('postgres', siege.ms, checked)
      expect(siege.unfinished).toBe(0)
      expect(checked.problems).toEqual([])
    },
    size.mostMs + 60_000,
  )
})
