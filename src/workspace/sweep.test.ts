import { expect, test } from 'bun:test'
import { existsSync, linkSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flags, hold } from './descriptor.ts'
import { createFixture } from './fixture.ts'
import { sweepTemporary, temporaryName } from './sweep.ts'

const inTwoHours = Date.now() + 2 * 60 * 60 * 1_000

function swept(folder: string, now?: number): string[] {
  using held = hold(folder, flags.folder)
  sweepTemporary(held, now)
  return readdirSync(folder)
}

test('only our own old temporary files go: no other name, no link, no folder, nothing with a second name, nothing fresh', () => {
  using fixture = createFixture()
  const folder = join(fixture.root, 'place')
  mkdirSync(folder)
  const at = (name: string) => join(folder, name)
  const [link, directory, twice] = [temporaryName(), temporaryName(), temporaryName()]
  const kept = ['.braidclaw-notes.tmp', `x${temporaryName()}`, temporaryName().toUpperCase(), `${temporaryName()}.txt`]
  for (const name of kept) writeFileSync(at(name), 'mine')
  symlinkSync('.braidclaw-notes.tmp', at(link))
  mkdirSync(at(directory))
  writeFileSync(at(twice), 'kept elsewhere')
  linkSync(at(twice), at('second name'))
  writeFileSync(at(temporaryName()), 'left by a crash')
  const all = readdirSync(folder)
  expect(swept(folder).sort()).toEqual(all.sort())
  expect(swept(folder, inTwoHours).sort()).toEqual([...kept, link, directory, twice, 'second name'].sort())
})

test('a file whose time was set back is as old as its last change of any kind', () => {
  using fixture = createFixture()
  const name = temporaryName()
  writeFileSync(join(fixture.root, name), '')
  utimesSync(join(fixture.root, name), 1, 1)
  expect(swept(fixture.root)).toContain(name)
})

test('a write looks through its folder once, and through no other', () => {
  using fixture = createFixture()
  const { workspace, root } = fixture
  mkdirSync(join(root, 'a'))
  mkdirSync(join(root, 'b'))
  const stale = ['a', 'b'].map((folder) => join(root, folder, temporaryName()))
  const date = Date.now
  try {
    for (const path of stale) writeFileSync(path, 'half')
    Date.now = () => inTwoHours
    expect(workspace.writeText('a/x', '1')).toMatchObject({ ok: true })
    expect(stale.map((path) => existsSync(path))).toEqual([false, true])
    for (const path of stale) writeFileSync(path, 'half')
    expect(workspace.editText('a/x', { find: '1', put: '2' })).toMatchObject({ ok: true })
    expect(stale.map((path) => existsSync(path))).toEqual([true, true])
  } finally {
    Date.now = date
  }
})
