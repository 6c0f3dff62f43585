import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { needs } from '../../support/needs.ts'
import { isDeep, repetitions } from '../../support/tier.ts'
import { hasPostgres, startPostgres } from '../support/postgres.ts'
import { type Checked, check } from './check.ts'
import { besiege } from './siege.ts'

/** `CHAOS_TASKS=10000` runs it in full, by hand; `CHAOS_MINUTES` limits the time of each engine. */
const tasks = Number(Bun.env.CHAOS_TASKS ?? repetitions({ fast: 30, deep: 60 }))
const seed = Number(Bun.env.CHAOS_SEED ?? 14)
const isFull = tasks > 200
const mostMs = Bun.env.CHAOS_MINUTES ? Number(Bun.env.CHAOS_MINUTES) * 60_000 : isFull ? tasks * 200 : 110_000
const workers = isFull ? 6 : repetitions({ fast: 2, deep: 3 })
const size = { tasks, realTasks: isFull ? tasks / 100 : 6, seed, everyMs: isFull ? 1_000 : 500, mostMs, workers }
const quiet = () => {}

/** The full size reports what happened. */
function report(engine: string, ms: number, { figures }: Checked): void {
  if (isFull) console.log(`chaos (${engine}): ${tasks} tasks in ${(ms / 1_000).toFixed(1)} s: ${JSON.stringify(figures)}`)
}

const attacks = ['daemon killed', 'worker killed', 'worker with a child killed', 'worker stopped', 'daemon stopped']

function expectGood({ problems, figures }: Checked, kinds: readonly string[]): void {
  expect(problems).toEqual([])
  expect(kinds.filter((kind) => !figures[kind])).toEqual([])
}

// At once: most of the time they wait.
describe.concurrent('kills, stops and cuts at random', () => {
  test.if(needs('bwrap'))(
    'leave every invariant true on SQLite',
    async () => {
      await using folder = newFolder()
      const siege = await besiege({ ...size, folder: folder.path, daemons: 1 })
      const store = await openSqlite({ path: join(folder.path, 'home', 'control', 'control.sqlite'), log: quiet })
      const checked = await check(store, siege.worldFolder, tasks).finally(store.close)
      report('sqlite', siege.ms, checked)
      // First: a task that has not ended breaks other invariants, by no fault of theirs.
      expect(siege.unfinished).toBe(0)
      expectGood(checked, attacks)
    },
    size.mostMs + 60_000,
  )

  if (!isDeep) return
  test.if(needs('bwrap') && hasPostgres())(
    'leave every invariant true on PostgreSQL with two daemons',
    async () => {
      await using folder = newFolder()
      const server = await startPostgres()
      folder.cleanups.push(server.remove)
      const url = await server.createDatabase()
      const siege = await besiege({ ...size, folder: folder.path, daemons: 2, postgres: { server, url } })
      const store = await openPostgres({ url, log: quiet })
      const checked = await check(store, siege.worldFolder, tasks).finally(store.close)
      report('postgres', siege.ms, checked)
      expect(siege.unfinished).toBe(0)
      expectGood(checked, [...attacks, 'connections cut', 'database killed'])
    },
    size.mostMs + 60_000,
  )
})

function newFolder() {
  const path = mkdtempSync(join(tmpdir(), 'control-chaos-'))
  const cleanups: (() => unknown)[] = [() => rmSync(path, { recursive: true, force: true })]
  return {
    ...{ path, cleanups },
    async [Symbol.asyncDispose]() {
      for (const clean of cleanups.toReversed()) await clean()
    },
  }
}
