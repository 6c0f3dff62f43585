import { afterEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Store } from '../contract/store-port.ts'
import { nextId, queryNumber } from '../plane/command.ts'
import { openSqlite } from './open-sqlite.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const log = () => {}

async function opened() {
  const folder = mkdtempSync(join(tmpdir(), 'control-store-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'control', 'control.sqlite')
  const store = await openSqlite({ path, log })
  cleanups.push(() => store.close())
  return { store, path }
}

test('creates a folder and a file that only their owner reads', async () => {
  const { path } = await opened()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
})

test('undoes only the command that throws, and commits the others of its group', async () => {
  const { store } = await opened()
  function* fails(): Command<void> {
    yield* nextId('runs')
    throw new Error('on purpose')
  }
  const answers = await Promise.allSettled([store.write(() => nextId('runs')), store.write(fails), store.write(() => nextId('runs'))])
  expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : 'refused'))).toEqual([1, 'refused', 2])
})

test('tells listeners after the commit, and nobody when the command failed', async () => {
  const { store } = await opened()
  const heard: string[] = []
  store.listen('tasks', () => heard.push('tasks'))
  function* fails(): Command<void> {
    yield* store.announce('tasks')
    throw new Error('on purpose')
  }
  await expect(store.write(fails)).rejects.toThrow('on purpose')
  expect(heard).toEqual([])
  await store.write(() => store.announce('tasks'))
  expect(heard).toEqual(['tasks'])
})

async function storageOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof PlaneRefusal)) throw new Error(`expected a refusal, not ${String(error)}`)
  expect(error.code).toBe('unavailable')
  return `${String(error.details.storage)}: ${error.message}`
}

const count = (store: Store) => store.read(() => queryNumber('SELECT count(*) AS value FROM settings'))

function* setting(name: string, value: string): Command<void> {
  yield ['INSERT INTO settings (name, value) VALUES (?, ?)', [name, value]]
}

test('says that a file is no database, that its folder is a file, and that a newer version wrote it', async () => {
  const { store, path } = await opened()
  const folder = join(path, '..')
  writeFileSync(join(folder, 'broken'), 'this is no database, however long it may be')
  chmodSync(join(folder, 'broken'), 0o600)
  expect(await storageOf(openSqlite({ path: join(folder, 'broken'), log }))).toContain('corrupt: database')
  expect(await storageOf(openSqlite({ path: join(folder, 'broken', 'control.sqlite'), log }))).toContain('unreadable: database')
  expect(await storageOf(openSqlite({ path: folder, log }))).toContain('unreadable: database')
  await store.write(function* () {
    yield ['UPDATE schema_version SET version = 9999']
  })
  expect(await storageOf(openSqlite({ path, log }))).toContain('newer_schema: the database was written by a newer BraidClaw')
})

test('refuses what does not fit on the disk, keeps what it acknowledged, and goes on when there is space again', async () => {
  const { store } = await opened()
  const [row] = await store.write(function* (): Command<readonly { readonly [name: string]: unknown }[]> {
    return yield ['PRAGMA page_count']
  })
  const limit = (pages: number) =>
    store.write(function* () {
      yield [`PRAGMA max_page_count = ${pages}`]
    })
  await store.write(() => setting('before', 'x'))
  await limit(Number(row?.page_count) + 2)
  const big = 'x'.repeat(100_000)
  const answers = await Promise.allSettled([store.write(() => setting('a', big)), store.write(() => setting('b', 'small'))])
  expect(answers[0]?.status).toBe('rejected')
  expect(await storageOf(store.write(() => setting('c', big)))).toContain('full: database')
  // The database holds exactly what the group of two acknowledged.
  expect(await count(store)).toBe(answers[1]?.status === 'fulfilled' ? 2 : 1)
  await limit(100_000)
  await store.write(() => setting('d', big))
  expect(await count(store)).toBeGreaterThan(1)
})

test('a reader sees one state while another process writes', async () => {
  const { store, path } = await opened()
  const other = await openSqlite({ path, log })
  cleanups.push(() => other.close())
  await Promise.all(Array.from({ length: 20 }, (_, at) => (at % 2 ? store : other).write(() => nextId('runs'))))
  expect(await store.read(() => queryNumber("SELECT value FROM sequences WHERE name = 'runs'"))).toBe(20)
})
