import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder } from '../fixture.ts'
import { createStore } from './executable-store.ts'

function stage(now = Date.now) {
  const at = createFolder()
  const folder = join(at.root, 'kept')
  return { ...at, folder, store: createStore(folder, now), file: join(at.root, 'tool'), [Symbol.dispose]: () => at[Symbol.dispose]() }
}

const sha = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

test('a file that is gone or no file is a refusal in words', () => {
  using at = stage()
  expect(at.store.keep(at.file)).toMatchObject({ ok: false, why: expect.stringContaining('cannot be read or kept') })
  expect(at.store.keep(at.root)).toMatchObject({ ok: false })
})

test('the copy stays what it was when the file changes in place, is replaced, or has its times set back', () => {
  using at = stage()
  at.put('tool', 'one')
  const noon = new Date('2026-01-01T12:00:00Z')
  utimesSync(at.file, noon, noon)
  const first = at.store.keep(at.file)
  if (!first.ok) throw new Error(first.why)
  expect(first.sha256).toBe(sha('one'))
  writeFileSync(at.file, 'two')
  utimesSync(at.file, noon, noon)
  expect(at.store.keep(at.file)).toMatchObject({ ok: true, sha256: sha('two') })
  at.put('other', 'six')
  utimesSync(join(at.root, 'other'), noon, noon)
  renameSync(join(at.root, 'other'), at.file)
  expect(at.store.keep(at.file)).toMatchObject({ ok: true, sha256: sha('six') })
  expect(readFileSync(first.copy, 'utf8')).toBe('one')
})

test('copies belong to us alone, keep their name, and are made once', () => {
  using at = stage()
  at.put('tool', 'one')
  const first = at.store.keep(at.file)
  if (!first.ok) throw new Error(first.why)
  expect([statSync(first.copy).mode & 0o777, statSync(at.folder).mode & 0o777]).toEqual([0o500, 0o700])
  expect(first.copy).toEndWith(`/${sha('one')}/tool`)
  const { ino } = statSync(first.copy)
  expect(createStore(at.folder, Date.now).keep(at.file)).toEqual(first)
  expect([statSync(first.copy).ino, readdirSync(at.folder).length]).toEqual([ino, 1])
})

test('what is remembered of some bytes is recalled by another process, and of no others', () => {
  using at = stage()
  at.put('tool', 'one')
  at.store.keep(at.file)
  expect(at.store.recall({ sha256: sha('one'), path: '/one' })).toBeUndefined()
  at.store.remember({ sha256: sha('one'), path: '/one' }, '{"name":"x"}')
  expect(createStore(at.folder, Date.now).recall({ sha256: sha('one'), path: '/one' })).toBe('{"name":"x"}')
  expect(at.store.recall({ sha256: sha('two'), path: '/one' })).toBeUndefined()
  expect(at.store.recall({ sha256: sha('one'), path: '/other' })).toBeUndefined()
})

test('what nobody used for a month goes when something new comes; what is used stays', () => {
  const clock = { at: Date.now() }
  using at = stage(() => clock.at)
  for (const name of ['old', 'used', 'new']) at.put(name, name)
  at.store.keep(join(at.root, 'old'))
  at.store.keep(join(at.root, 'used'))
  clock.at += 40 * 24 * 3_600_000
  createStore(at.folder, () => clock.at).keep(join(at.root, 'used'))
  at.store.keep(join(at.root, 'new'))
  expect(['old', 'used', 'new'].map((name) => existsSync(join(at.folder, sha(name))))).toEqual([false, true, true])
})
