import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { createFixture, type Fixture, picture } from './fixture.ts'

/** A small tree with everything that a file system has. */
function furnish({ at }: Fixture): void {
  mkdirSync(at('src/deep'), { recursive: true })
  writeFileSync(at('src/a.txt'), 'alpha')
  writeFileSync(at('src/b.sh'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(at('src/deep/c'), 'c')
  writeFileSync(at('gone'), 'gone')
  symlinkSync('src/a.txt', at('link'))
  mkdirSync(at('old/inner'), { recursive: true })
  writeFileSync(at('old/inner/x'), 'x')
  writeFileSync(at('becomes-folder'), 'file')
}

function everything(at: (path: string) => string): void {
  writeFileSync(at('src/a.txt'), 'beta')
  chmodSync(at('src/b.sh'), 0o600)
  unlinkSync(at('gone'))
  unlinkSync(at('link'))
  symlinkSync('src/deep', at('link'))
  rmSync(at('old'), { recursive: true })
  writeFileSync(at('old'), 'a file now')
  unlinkSync(at('becomes-folder'))
  mkdirSync(at('becomes-folder/sub'), { recursive: true })
  writeFileSync(at('becomes-folder/sub/f'), 'f')
  mkdirSync(at('new/ü'), { recursive: true, mode: 0o750 })
  writeFileSync(at('new/ü/file'), 'new')
  renameSync(at('src/deep/c'), at('src/c'))
  chmodSync(at('src/deep'), 0o700)
}

describe('a change set', () => {
  test('is applied whole, undone exactly, and applied again', async () => {
    await using fixture = await createFixture()
    furnish(fixture)
    const before = picture(fixture.root)
    let wanted: ReturnType<typeof picture> = {}
    const set = await fixture.command((at) => {
      everything(at)
      wanted = picture(at('.'))
    })
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
