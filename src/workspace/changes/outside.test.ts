/** Change sets that cover a git directory outside the workspace, too. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFixture, everything, type Fixture, furnish, pictureOf } from './fixture.ts'

async function ground(): Promise<Fixture & { readonly git: string; inGit(path: string): string }> {
  const fixture = await createFixture({ gitIn: tmpdir() })
  const { git } = fixture
  if (git === undefined) throw new Error('the fixture has no git directory')
  const inGit = (path: string) => join(git, path)
  furnish(fixture)
  furnish({ ...fixture, at: inGit })
  for (const at of [fixture.at, inGit]) mkdirSync(at('objects'))
  return { ...fixture, git, inGit }
}

const nothing = { ok: false, message: expect.stringContaining('nothing was changed') }

test('it is applied, undone and applied again together with the workspace', async () => {
  await using fixture = await ground()
  const before = pictureOf(fixture)
  const { wanted, ...set } = await fixture.command(everything)
  expect(await fixture.store.apply(set)).toMatchObject({ ok: true, count: set.changes.length })
  expect(pictureOf(fixture)).toEqual(wanted)
  expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
  expect(pictureOf(fixture)).toEqual(before)
  expect(await fixture.store.redo(set.id)).toMatchObject({ ok: true })
  expect(pictureOf(fixture)).toEqual(wanted)
})

describe('nothing at all is applied', () => {
  test('when somebody changed one file of it meanwhile', async () => {
    await using fixture = await ground()
    const set = await fixture.command(everything)
    writeFileSync(fixture.inGit('src/a.txt'), 'theirs')
    const before = pictureOf(fixture)
    expect(await fixture.store.apply(set)).toMatchObject({
      ok: false,
      conflicts: [{ path: fixture.inGit('src/a.txt'), reason: 'was changed meanwhile' }],
    })
    expect(pictureOf(fixture)).toEqual(before)
  })

  test('when another folder has its name since', async () => {
    await using fixture = await ground()
    const set = await fixture.command(everything)
    renameSync(fixture.git, `${fixture.git}-away`)
    mkdirSync(fixture.git)
    furnish({ ...fixture, at: fixture.inGit })
    const before = pictureOf(fixture)
    expect(await fixture.store.apply(set)).toMatchObject({ ok: false, message: expect.stringContaining('is another one now') })
    expect(pictureOf(fixture)).toEqual(before)
    rmSync(`${fixture.git}-away`, { recursive: true })
  })

  test('to a path that is not below it, whatever the set says', async () => {
    await using fixture = await ground()
    const file = { kind: 'file', mode: 0o644, size: 1 } as const
    for (const path of ['/etc/x', `${fixture.git}-beside/x`, `${fixture.git}/../x`, `${fixture.git}//x`, fixture.git, '/']) {
      const { wanted: _, ...set } = await fixture.command((at) => writeFileSync(at('made'), 'x'))
      const changes = [...set.changes, { path, after: file }]
      expect(await fixture.store.apply({ ...set, changes })).toMatchObject({
        ok: false,
        conflicts: [{ path, reason: 'is not a path in the workspace' }],
      })
      expect(existsSync(fixture.at('made'))).toBe(false)
    }
  })

  test('through a link that stands in the place of one of its folders', async () => {
    await using fixture = await ground()
    const set = await fixture.command((at) => writeFileSync(at('src/deep/new'), 'x'))
    const away = join(fixture.base, 'away')
    renameSync(fixture.inGit('src/deep'), away)
    symlinkSync(away, fixture.inGit('src/deep'))
    expect(await fixture.store.apply(set)).toMatchObject(nothing)
    expect([readdirSync(away), existsSync(fixture.at('src/deep/new'))]).toEqual([['c'], false])
  })
})

describe('objects of git that are there meanwhile', () => {
  const name = `objects/ab/${'c'.repeat(38)}`
  const write = (at: (path: string) => string, text: string) => {
    mkdirSync(at('objects/ab'), { recursive: true })
    writeFileSync(at(name), text)
  }

  test('are no conflict, and an undo leaves them', async () => {
    await using fixture = await ground()
    const set = await fixture.command((at) => {
      write(at, 'same')
      writeFileSync(at('objects/ab/own'), 'own')
    })
    for (const at of [fixture.at, fixture.inGit]) write(at, 'same')
    expect(await fixture.store.apply(set)).toMatchObject({ ok: true })
    expect(readFileSync(fixture.inGit('objects/ab/own'), 'utf8')).toBe('own')
    expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
    expect(readdirSync(fixture.inGit('objects/ab'))).toEqual(['c'.repeat(38)])
  })

  test('with other content are one', async () => {
    await using fixture = await ground()
    const set = await fixture.command((at) => write(at, 'ours'))
    write(fixture.inGit, 'true')
    expect(await fixture.store.apply(set)).toMatchObject({ ok: false, conflicts: [{ path: fixture.inGit(name) }] })
    expect(readdirSync(fixture.at('objects'))).toEqual([])
  })
})
