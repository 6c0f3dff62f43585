import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../../src/control/contract/store-port.ts'
import { nextId } from '../../../src/control/plane/command.ts'
import { backup, copyStore, digests, restore, tables } from '../../../src/control/store/copy-store.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { bringUpToDate, migrations } from '../../../src/control/store/schema.ts'
import { cleaned } from '../support/cleaned.ts'
import { forEachEngine } from '../support/engines.ts'
import { anna, draft, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

const cleanups = cleaned()

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'control-copy-'))
  cleanups.push(() => rmSync(path, { recursive: true }))
  return path
}

const quiet = () => {}

async function filled(): Promise<Store> {
  const store = await openSqlite({ path: ':memory:', log: quiet })
  cleanups.push(() => store.close())
  const plane = await taskPlane(store)
  await plane.addAgent('a1')
  await plane.tasks.createMany(
    anna,
    Array.from({ length: 600 }, (_, at) =>
      draft({ title: `task ${at} 'ä"\\ 🦞`, labels: ['Z', 'a', 'ö'].slice(at % 3).filter((name) => name !== 'ö') }),
    ),
  )
  await plane.tasks.create(anna, draft({ depends_on: ['TASK-001'] }), { key: 'k', digest: 'd' })
  const run = runCaller(await plane.mustClaim())
  await plane.tasks.beginEffect(run, run.kind === 'run' ? run.taskId : '', { key: 'mail', idempotent: false, description: '' })
  return store
}

test('every table of the schema is known with its columns and key', () => {
  const created = migrations.flat().filter((statement) => statement.startsWith('CREATE TABLE'))
  expect(tables()).toHaveLength(created.length)
  expect(tables().filter((table) => table.key.length === 0 || table.columns.length < 2)).toEqual([])
  expect(tables().find((table) => table.name === 'run_logs')?.key).toEqual([
    { column: 'run_id', isText: false },
    { column: 'at_byte', isText: false },
  ])
  expect(tables().find((table) => table.name === 'labels')?.columns).toEqual(['task_id', 'label', 'queue', 'queue_at'])
})

forEachEngine('a copy', (open, engine) => {
  test('tables of the first version are brought up to date with the rows that they have', async () => {
    const store = await open()
    const plane = await taskPlane(store)
    await plane.addAgent('a1')
    for (const fields of [{ labels: ['gpu'] }, { labels: ['gpu'], agent_id: 'a1' }, {}]) await plane.tasks.create(anna, draft(fields))
    await plane.mustClaim('a1', { labels: ['gpu'] })
    await store.write(function* () {
      yield ["INSERT INTO sessions (id, agent_id, run_id, at, line) VALUES (1, 'a1', 1, ?, '{}')", [plane.clock.at]]
    })
    const before = await digests(store)
    await store.write(function* () {
      const added = migrations.slice(1).flat()
      for (const [, name] of added.flatMap((sql) => [/^CREATE TABLE (\w+)/.exec(sql) ?? []])) if (name) yield [`DROP TABLE ${name}`]
      for (const [, name] of added.flatMap((sql) => [/^CREATE INDEX (\w+)/.exec(sql) ?? []])) if (name) yield [`DROP INDEX ${name}`]
      for (const [, table, column] of added.flatMap((sql) => [/^ALTER TABLE (\w+) ADD COLUMN (\w+)/.exec(sql) ?? []]))
        if (table) yield [`ALTER TABLE ${table} DROP COLUMN ${column}`]
      yield ['UPDATE schema_version SET version = 1']
    })
    expect(await store.write(() => bringUpToDate(engine))).toBe(migrations.length)
    expect(await digests(store)).toEqual(before)
  })

  test('holds the same rows, and the plane goes on there', async () => {
    const [from, to] = [await filled(), await open()]
    const copied = await copyStore({ from, to })
    expect(copied).toEqual(await digests(from))
    expect(copied.find((one) => one.table === 'tasks')?.rows).toBe(601)
    expect((await (await taskPlane(to)).tasks.create(anna, draft())).task.task_id).toBe('TASK-602')
  })

  test('refuses a target that is not empty, and finishes one that was interrupted', async () => {
    const [from, to] = [await filled(), await open()]
    await to.write(() => nextId('runs'))
    expect(await refusalOf(copyStore({ from, to }))).toBe('conflict')
    await to.write(function* () {
      yield ["INSERT INTO settings (name, value) VALUES ('copy_unfinished', '1')"]
    })
    expect(await copyStore({ from, to })).toEqual(await digests(from))
  })

  test('whose source changes meanwhile is refused and can be made again', async () => {
    const [from, to] = [await filled(), await open()]
    const copied = (table: string) => void (table === 'tasks' && from.write(() => nextId('runs')))
    expect(await refusalOf(copyStore({ from, to, copied }))).toBe('conflict')
    expect(await copyStore({ from, to })).toEqual(await digests(from))
  })

  test('a backup is one file for its owner alone; restored into an empty database it is the same', async () => {
    const store = await open()
    await copyStore({ from: await filled(), to: store })
    const path = join(folder(), 'backup.sqlite')
    const kept = await backup({ store, path, log: quiet })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(kept).toEqual(await digests(store))
    expect(await refusalOf(backup({ store, path, log: quiet }))).toBe('conflict')
    expect(await refusalOf(restore({ path, store, log: quiet }))).toBe('conflict')
    expect(await restore({ path, store: await open(), log: quiet })).toEqual(kept)
    expect(await refusalOf(restore({ path: `${path}-none`, store: await open(), log: quiet }))).toBe('not_found')
  })
})
