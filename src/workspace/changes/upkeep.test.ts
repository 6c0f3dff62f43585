import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFixture, picture } from './fixture.ts'
import { openChangeStore } from './store.ts'

const review = { digest: 'd', verdict: 'ask', rule: 'r', reason: 'because', summary: '1 change', count: 1 } as const

describe('a change set that waits', () => {
  test('survives the process with its judgement and content, and is applied by another one or dropped', async () => {
    await using fixture = await createFixture()
    const { store, at, options } = fixture
    writeFileSync(at('f'), 'old')
    const [first, second] = [
      await fixture.command((of) => writeFileSync(of('f'), 'new')),
      await fixture.command((of) => writeFileSync(of('g'), 'new')),
    ]
    for (const { id, changes, about } of [first, second]) if (about) await store.hold(id, { changes, review, about })
    const other = openChangeStore({ ...options, isInUse: () => false })
    expect(await other.recover()).toEqual({ finished: [], takenBack: [], orphans: [] })
    const shown = other.show(first.id)
    expect(shown).toMatchObject({ state: 'pending', review, changes: first.changes, about: { command: 'make' }, workspace: fixture.root })
    expect(
      ['before', 'after'].map((side) => Buffer.from(shown?.read('f', side === 'before' ? side : 'after', 9) ?? []).toString()),
    ).toEqual(['old', 'new'])
    await other.drop(second.id)
    expect(existsSync(join(options.folder, second.id))).toBe(false)
    expect(await other.apply({ id: first.id })).toEqual({ ok: true, count: 1 })
    expect(readFileSync(at('f'), 'utf8')).toBe('new')
    expect(other.list()).toMatchObject([{ id: first.id, state: 'applied', review }])
    expect(await other.apply({ id: first.id })).toMatchObject({ ok: false, message: expect.stringContaining('is applied already') })
    await expect(other.drop(first.id)).rejects.toThrow('undo it instead')
  })

  test('stays pending when it cannot be applied', async () => {
    await using fixture = await createFixture()
    writeFileSync(fixture.at('f'), 'old')
    const { id, changes, about } = await fixture.command((of) => writeFileSync(of('f'), 'new'))
    if (about) await fixture.store.hold(id, { changes, review, about })
    writeFileSync(fixture.at('f'), 'theirs')
    expect(await fixture.store.apply({ id })).toMatchObject({ ok: false, conflicts: [{ path: 'f' }] })
    expect(fixture.store.list()).toMatchObject([{ id, state: 'pending' }])
  })
})

test('a private view of a dead process is an orphan, one of a living process is not', async () => {
  await using fixture = await createFixture()
  for (const id of ['tx-dead', 'tx-alive']) await fixture.command(() => {}, id)
  const store = openChangeStore({ ...fixture.options, isInUse: (id) => id === 'tx-alive' })
  expect(await store.recover()).toEqual({ finished: [], takenBack: [], orphans: ['tx-dead'] })
  mkdirSync(join(fixture.options.folder, 'tx-dead/work/work'))
  chmodSync(join(fixture.options.folder, 'tx-dead/work/work'), 0)
  await store.drop('tx-dead')
  expect(readdirSync(fixture.options.folder).filter((name) => name.startsWith('tx-'))).toEqual(['tx-alive'])
})

describe('sets beyond the limits', () => {
  async function three() {
    const fixture = await createFixture()
    for (const size of [100, 200, 300]) {
      writeFileSync(fixture.at('f'), 'x'.repeat(size))
      await fixture.applied((of) => writeFileSync(of('f'), 'new'))
    }
    return fixture
  }
  const kept = async (limits: Partial<typeof import('./fixture.ts').limits>, now?: number) => {
    await using fixture = await three()
    const { options } = fixture
    const store = openChangeStore({ ...options, limits: { ...options.limits, ...limits }, ...(now && { now: () => now }) })
    await store.prune()
    return store.list().map(({ bytes }) => bytes)
  }

  test('are forgotten, the oldest first, but the newest never for its size', async () => {
    expect(await kept({})).toEqual([300, 200, 100])
    expect(await kept({ keepSets: 2 })).toEqual([300, 200])
    expect(await kept({ keepBytes: 500 })).toEqual([300, 200])
    expect(await kept({ keepBytes: 10 })).toEqual([300])
    expect(await kept({ keepSets: 0 })).toEqual([])
    expect(await kept({ keepDays: 1 }, 1_800_000_000_000 + 86_400_000 + 3)).toEqual([300])
  })

  test('are counted apart in workspaces that are apart, so that a long run pushes out nothing of a person', async () => {
    await using own = await createFixture()
    await own.applied((of) => writeFileSync(of('mine'), 'x'))
    await using run = await createFixture()
    for (const name of ['a', 'b', 'c']) {
      const id = await run.applied((of) => writeFileSync(of(name), 'x'))
      renameSync(join(run.options.folder, id), join(own.options.folder, `tx-run-${name}`))
    }
    const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 2, isApart: (workspace: string) => workspace === run.root }
    const store = openChangeStore({ ...own.options, limits })
    expect(await store.prune()).toBe(1)
    expect(store.list().map(({ workspace }) => workspace === own.root)).toEqual([false, false, true])
  })

  test('are looked for at most every ten minutes, unless there are too many', async () => {
    await using fixture = await three()
    const { options, store } = fixture
    const at = (minutes: number, keepSets = 3) =>
      openChangeStore({ ...options, limits: { keepBytes: 10, keepDays: 1, keepSets }, now: () => Date.now() + minutes * 60_000 })
    expect(await store.prune()).toBe(0)
    expect(await at(9).prune()).toBe(0)
    expect(await at(9, 2).prune()).toBe(2)
  })
})

test('what an applied set no longer needs is removed, and it can be undone all the same', async () => {
  await using fixture = await createFixture()
  writeFileSync(fixture.at('f'), 'old')
  const before = picture(fixture.root)
  const id = await fixture.applied((of) => writeFileSync(of('f'), 'new'))
  const folder = join(fixture.options.folder, id)
  for (let waited = 0; existsSync(join(folder, 'gone')) && waited < 100; waited++) await Bun.sleep(10)
  expect(readdirSync(folder).sort()).toEqual(['done-1', 'start', 'undo'])
  expect(await fixture.store.undo(id)).toMatchObject({ ok: true })
  expect(picture(fixture.root)).toEqual(before)
})

test('a set whose layers lie on another file system than the store is kept by a link, and goes with it', async () => {
  await using fixture = await createFixture()
  await using elsewhere = await createFixture({ storeIn: '/dev/shm' })
  writeFileSync(fixture.at('f'), 'old')
  writeFileSync(elsewhere.at('f'), 'old')
  const { changes, about, id } = await elsewhere.command((of) => writeFileSync(of('f'), 'new'))
  const folder = join(elsewhere.options.folder, id)
  const store = openChangeStore({ ...fixture.options, limits: { ...fixture.options.limits, keepSets: 0 } })
  await Bun.sleep(5)
  writeFileSync(join(folder, 'start'), '')
  expect(await store.apply({ id, folder, changes, about })).toEqual({ ok: true, count: 1 })
  expect(readFileSync(fixture.at('f'), 'utf8')).toBe('new')
  expect(await store.undo(id)).toMatchObject({ ok: true })
  expect(readFileSync(fixture.at('f'), 'utf8')).toBe('old')
  expect(await store.prune()).toBe(1)
  expect(existsSync(folder)).toBe(false)
})

test('two processes take turns', async () => {
  await using fixture = await createFixture()
  const { options } = fixture
  const sets = [await fixture.command((of) => writeFileSync(of('a'), 'a')), await fixture.command((of) => writeFileSync(of('b'), 'b'))]
  const script = `
    const { openChangeStore } = await import(${JSON.stringify(join(import.meta.dir, 'store.ts'))})
    const [folder, workspace, set] = JSON.parse(process.argv.at(-1))
    const fs = await import('node:fs')
    const seen = []
    const onStep = () => { fs.appendFileSync(folder + '/.order', set.id + '\\n'); Bun.sleepSync(20) }
    const store = openChangeStore({ folder, workspace, log() {}, now: Date.now, limits: { keepBytes: 1, keepDays: 1, keepSets: 1 }, onStep })
    console.log(JSON.stringify(await store.apply(set)))`
  const children = sets.map((set) =>
    Bun.spawn([process.execPath, '--config=/dev/null', '-e', script, JSON.stringify([options.folder, options.workspace, set])], {
      stdout: 'pipe',
    }),
  )
  const done = await Promise.all(children.map((child) => new Response(child.stdout).json()))
  expect(done).toMatchObject([{ ok: true }, { ok: true }])
  const order = readFileSync(join(options.folder, '.order'), 'utf8').trimEnd().split('\n')
  expect(order.length).toBeGreaterThan(4)
  expect(order.filter((id, at) => id !== order[at - 1])).toHaveLength(2)
})
