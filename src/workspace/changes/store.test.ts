import { describe, expect, test } from 'bun:test'
import { createFixture, everything, furnish, picture } from './fixture.ts'

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
