import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { createFixture, everything, furnish, picture } from './fixture.ts'
import { openLibc } from './tree/libc.ts'

describe('a change set', () => {
  test('is applied whole, undone exactly, and applied again', async () => {
    await using fixture = await createFixture()
    furnish(fixture)
    const before = picture(fixture.root)
    const set = await fixture.command(everything)
    const { wanted } = set
    expect(await fixture.store.apply(set)).toEqual({ ok: true, count: set.changes.length })
    expect(picture(fixture.root)).toEqual(wanted)
    expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
    expect(picture(fixture.root)).toEqual(before)
    expect(await fixture.store.redo(set.id)).toMatchObject({ ok: true })
    expect(picture(fixture.root)).toEqual(wanted)
    expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
    expect(picture(fixture.root)).toEqual(before)
  })
})

test('a command that works on the workspace itself keeps no set waiting; another set does', async () => {
  await using fixture = await createFixture()
  const set = await fixture.command((at) => writeFileSync(at('a'), 'x'))
  const [command, other] = [openSync(fixture.root, 'r'), openSync(fixture.root, 'r')]
  const libc = openLibc()
  expect(libc.lock(command, { shared: true })).toBe(true)
  expect(await fixture.store.apply(set)).toMatchObject({ ok: true })
  closeSync(command)
  expect(libc.lock(other)).toBe(true)
  const undone = fixture.store.undo(set.id)
  expect(await Promise.race([undone, Bun.sleep(100).then(() => 'waits')])).toBe('waits')
  closeSync(other)
  expect(await undone).toMatchObject({ ok: true })
})
