import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createFixture, everything, type Fixture, furnish, picture } from './fixture.ts'
import { openChangeStore } from './store.ts'

/** Applies and undoes a change, and expects exactly what it says each time. */
async function thereAndBack(fixture: Fixture, change: (at: (path: string) => string) => void): Promise<void> {
  const before = picture(fixture.root)
  const set = await fixture.command(change)
  expect(await fixture.store.apply(set)).toMatchObject({ ok: true })
  expect(picture(fixture.root)).toEqual(set.wanted)
  expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
  expect(picture(fixture.root)).toEqual(before)
  expect(await fixture.store.redo(set.id)).toMatchObject({ ok: true })
  expect(picture(fixture.root)).toEqual(set.wanted)
}

const places = [
  ['on one file system', {}],
  ['on two', { workspaceIn: '/dev/shm' }],
] as const

describe.each(places)('%s', (_, where) => {
  test('names of any bytes, with newlines too, are applied and undone', async () => {
    await using fixture = await createFixture(where)
    const raw = (at: string, ...bytes: number[]) => Buffer.concat([Buffer.from(at), Buffer.from(bytes)])
    mkdirSync(raw(fixture.at('d'), 0xff))
    writeFileSync(Buffer.concat([raw(fixture.at('d'), 0xff), Buffer.from('/inner')]), 'old')
    writeFileSync(fixture.at('two\nlines'), 'old')
    await thereAndBack(fixture, (at) => {
      writeFileSync(Buffer.concat([raw(at('d'), 0xff), Buffer.from('/inner')]), 'new')
      writeFileSync(raw(at('n'), 0xc3, 0x28, 0x0a), 'new')
      symlinkSync(Buffer.from([0xfe]), raw(at('l'), 0xfd))
      unlinkSync(at('two\nlines'))
    })
  })

  test('times are kept to the nanosecond, before 1970 too', async () => {
    await using fixture = await createFixture(where)
    writeFileSync(fixture.at('old'), '')
    Bun.spawnSync(['touch', '-d', '1969-12-31 23:59:58.123456789Z', fixture.at('old')])
    await thereAndBack(fixture, (at) => {
      writeFileSync(at('old'), 'new')
      Bun.spawnSync(['touch', '-d', '2001-02-03 04:05:06.987654321Z', at('old')])
      symlinkSync('nowhere', at('link'))
      Bun.spawnSync(['touch', '-h', '-d', '1960-01-01 00:00:00.000000001Z', at('link')])
    })
  })

  test('set-user-ID, set-group-ID and sticky bits never come in, and those that were there come back', async () => {
    await using fixture = await createFixture(where)
    const { at, store } = fixture
    for (const name of ['kept', 'run']) writeFileSync(at(name), 'old')
    chmodSync(at('kept'), 0o4755)
    mkdirSync(at('shared'), 0o755)
    chmodSync(at('shared'), 0o3775)
    const set = await fixture.command((inside) => {
      for (const name of ['kept', 'run', 'new']) {
        writeFileSync(inside(name), 'evil')
        chmodSync(inside(name), 0o6755)
      }
      mkdirSync(inside('sticky'))
      chmodSync(inside('sticky'), 0o7755)
      chmodSync(inside('shared'), 0o755)
    })
    expect(await store.apply(set)).toMatchObject({ ok: true })
    const modes = () =>
      ['kept', 'run', 'new', 'sticky', 'shared']
        .map((name) => lstatSync(at(name), { throwIfNoEntry: false })?.mode ?? 0)
        .map((mode) => (mode & 0o7777).toString(8))
    expect(modes()).toEqual(['755', '755', '755', '755', '3755'])
    expect(await store.undo(set.id)).toMatchObject({ ok: true })
    expect(modes()).toEqual(['4755', '644', '0', '0', '3775'])
  })

  test('a parent that is swapped for a link while the set is applied leads nothing outside', async () => {
    for (let nth = 1; nth <= 45; nth += 4) {
      const counter = { steps: 0 }
      await using fixture = await createFixture(where)
      furnish(fixture)
      const outside = join(fixture.base, 'outside')
      mkdirSync(join(outside, 'deep'), { recursive: true })
      for (const name of ['a.txt', 'b.sh', 'deep/c']) writeFileSync(join(outside, name), 'OUTSIDE')
      const before = picture(outside)
      const aside = `${fixture.root}-aside`
      const set = await fixture.command(everything)
      const onStep = () => {
        if (++counter.steps !== nth) return
        renameSync(fixture.at('src'), aside)
        symlinkSync(outside, fixture.at('src'))
      }
      const store = openChangeStore({ ...fixture.options, onStep })
      const done = await store.apply(set)
      expect(picture(outside)).toEqual(before)
      const moved = lstatSync(aside, { throwIfNoEntry: false }) !== undefined
      // Until then something in the folder is still to come.
      if (nth < 20) expect({ nth, ok: done.ok }).toEqual({ nth, ok: false })
      if (done.ok) continue
      expect(moved).toBe(true)
      unlinkSync(fixture.at('src'))
      renameSync(aside, fixture.at('src'))
      await openChangeStore(fixture.options).recover()
      expect(readFileSync(fixture.at('src/a.txt'), 'utf8')).toBe('alpha')
    }
  }, 120_000)
})

test('hard links among new files stay links', async () => {
  await using fixture = await createFixture()
  await fixture.applied((at) => {
    writeFileSync(at('one'), 'x')
    linkSync(at('one'), at('two'))
  })
  expect(statSync(fixture.at('one')).ino).toBe(statSync(fixture.at('two')).ino)
})

test('a hard link that was deleted twice and one that was broken are put back as links', async () => {
  await using fixture = await createFixture()
  const { at } = fixture
  writeFileSync(at('a'), 'x')
  for (const name of ['b', 'c', 'd']) linkSync(at('a'), at(name))
  const inode = statSync(at('a')).ino
  const id = await fixture.applied((inside) => {
    unlinkSync(inside('a'))
    unlinkSync(inside('b'))
    unlinkSync(inside('c'))
    writeFileSync(inside('c'), 'another')
  })
  expect(await fixture.store.undo(id)).toMatchObject({ ok: true })
  expect(['a', 'b', 'c', 'd'].map((name) => statSync(at(name)).ino)).toEqual([inode, inode, inode, inode])
})

test('a path that leads out, a pipe, and a view that is not the judged one are refused', async () => {
  await using fixture = await createFixture()
  const { store } = fixture
  const after = { kind: 'file', mode: 0o644, size: 1 } as const
  for (const path of ['../x', '/x', 'a//b', './a', '', 'a/..', 'a\0']) {
    const set = await fixture.command(() => {})
    expect(await store.apply({ ...set, changes: [{ path, after }] })).toMatchObject({
      ok: false,
      conflicts: [{ path, reason: 'is not a path in the workspace' }],
    })
  }
  const pipe = await fixture.command((at) => Bun.spawnSync(['mkfifo', at('pipe')]))
  expect(await store.apply(pipe)).toMatchObject({ ok: false, message: expect.stringContaining('"pipe" is a pipe, socket or device') })
  const swapped = await fixture.command((at) => writeFileSync(at('f'), 'judged'))
  writeFileSync(join(fixture.options.folder, swapped.id, 'up/f'), 'other than judged')
  expect(await store.apply(swapped)).toMatchObject({
    ok: false,
    message: expect.stringContaining('"f" is not in the private view as it was judged'),
  })
  expect(readdirSync(fixture.root)).toEqual([])
})

test('a signal stops it only before the plan is on disk', async () => {
  await using fixture = await createFixture()
  const early = new AbortController()
  const set = await fixture.command((at) => writeFileSync(at('f'), 'x'))
  early.abort()
  expect(await fixture.store.apply({ ...set, signal: early.signal })).toMatchObject({
    ok: false,
    message: 'cancelled before anything was changed',
  })
  expect(readdirSync(fixture.root)).toEqual([])
  const late = new AbortController()
  const counter = { steps: 0 }
  const store = openChangeStore({ ...fixture.options, onStep: () => ++counter.steps === 2 && late.abort() })
  expect(await store.apply({ ...set, signal: late.signal })).toMatchObject({ ok: true })
  expect(late.signal.aborted).toBe(true)
  expect(readdirSync(fixture.root)).toEqual(['f'])
})

test('files are undone path by path, a deleted folder together with what is asked for in it', async () => {
  await using fixture = await createFixture()
  furnish(fixture)
  const { store, at } = fixture
  const before = picture(fixture.root)
  const id = await fixture.applied((inside) => {
    rmSync(inside('old'), { recursive: true })
    writeFileSync(inside('src/a.txt'), 'new')
    mkdirSync(inside('made/deep'), { recursive: true })
    writeFileSync(inside('made/deep/f'), 'f')
  })
  expect(await store.restore(id, ['old/inner/x'])).toEqual({ ok: true, count: 3 })
  expect(readFileSync(at('old/inner/x'), 'utf8')).toBe('x')
  expect(store.show(id)).toMatchObject({ state: 'partly undone', undone: ['old', 'old/inner', 'old/inner/x'] })
  expect(await store.restore(id, ['old'])).toMatchObject({ ok: false, message: expect.stringContaining('nothing to undo') })
  expect(await store.restore(id, ['made/'])).toEqual({ ok: true, count: 3 })
  expect(readFileSync(at('src/a.txt'), 'utf8')).toBe('new')
  expect(await store.undo(id)).toEqual({ ok: true, count: 1 })
  expect(picture(fixture.root)).toEqual(before)
  expect(store.list()).toMatchObject([{ state: 'undone' }])
})

test('what was changed since is undone only by force, and is kept then', async () => {
  await using fixture = await createFixture()
  const { store, at } = fixture
  writeFileSync(at('f'), 'old')
  writeFileSync(at('g'), 'old')
  const id = await fixture.applied((inside) => {
    writeFileSync(inside('f'), 'new')
    unlinkSync(inside('g'))
  })
  utimesSync(at('f'), new Date(), new Date())
  expect(await store.undo(id)).toMatchObject({ ok: true })
  expect(await store.redo(id)).toMatchObject({ ok: true })
  writeFileSync(at('f'), 'mine')
  writeFileSync(at('g'), 'mine too')
  const refused = await store.undo(id)
  expect(refused).toMatchObject({
    ok: false,
    conflicts: [
      { path: 'f', reason: 'was changed since' },
      { path: 'g', reason: 'was created since' },
    ],
  })
  expect(readFileSync(at('f'), 'utf8')).toBe('mine')
  expect(await store.undo(id, { force: true })).toMatchObject({ ok: true })
  expect(['f', 'g'].map((name) => readFileSync(at(name), 'utf8'))).toEqual(['old', 'old'])
  expect(readFileSync(join(fixture.options.folder, id, 'up/f'), 'utf8')).toBe('mine')
  expect(await store.redo(id, { force: true })).toMatchObject({ ok: true })
  expect(readFileSync(at('f'), 'utf8')).toBe('mine')
})
