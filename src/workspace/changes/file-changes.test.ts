import { describe, expect, test } from 'bun:test'
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { insideOnly } from '../fixture.ts'
import { openWorkspace } from '../workspace.ts'
import { createFixture, type Fixture, picture } from './fixture.ts'

function filesOf({ root, store }: Fixture) {
  return openWorkspace({ root, check: insideOnly(root), originals: store.originals({ conversation: 'con_1', run: () => 'run_1' }) })
}

const by = { call: 'call_7', tool: 'file_write' }

describe('a file tool', () => {
  test('that replaces a file leaves a change set, and undoing it brings the very file back', async () => {
    await using fixture = await createFixture()
    const { root, store, at } = fixture
    writeFileSync(at('f'), 'old')
    chmodSync(at('f'), 0o751)
    const before = { picture: picture(root), inode: statSync(at('f')).ino }
    expect(filesOf(fixture).writeText('f', 'new', by)).toMatchObject({ ok: true })
    const [set] = store.list()
    expect(set).toMatchObject({ state: 'applied', count: 1, bytes: 3, about: { call: 'call_7', tool: 'file_write', run: 'run_1' } })
    const shown = store.show(set?.id ?? '')
    expect(shown?.changes).toMatchObject([{ path: 'f', before: { kind: 'file', mode: 0o751, size: 3 }, after: { kind: 'file', size: 3 } }])
    expect(Buffer.from(shown?.read('f', 'before', 100) ?? []).toString()).toBe('old')
    expect(Buffer.from(shown?.read('f', 'after', 100) ?? []).toString()).toBe('new')
    expect(await store.undo(set?.id ?? '')).toEqual({ ok: true, count: 1 })
    expect({ picture: picture(root), inode: statSync(at('f')).ino }).toEqual(before)
  })

  test('that creates a file removes it with the folders it made', async () => {
    await using fixture = await createFixture()
    const before = picture(fixture.root)
    filesOf(fixture).writeText('a/b/c', 'new', by)
    const id = fixture.store.list()[0]?.id ?? ''
    expect(fixture.store.show(id)?.changes.map(({ path }) => path)).toEqual(['a', 'a/b', 'a/b/c'])
    writeFileSync(fixture.at('a/mine'), 'mine')
    expect(await fixture.store.undo(id)).toMatchObject({
      ok: false,
      conflicts: [{ path: 'a', reason: 'has "mine" in it, which was created since' }],
    })
    Bun.spawnSync(['rm', fixture.at('a/mine')])
    expect(await fixture.store.undo(id)).toMatchObject({ ok: true })
    expect(picture(fixture.root)).toEqual(before)
  })

  test('is not undone over what somebody wrote since, and several writes of one file go back one after the other', async () => {
    await using fixture = await createFixture()
    const { store, at } = fixture
    const clock = { at: 1_000 }
    const files = filesOf({
      ...fixture,
      store: (await import('./store.ts')).openChangeStore({ ...fixture.options, now: () => clock.at++ }),
    })
    writeFileSync(at('f'), 'one')
    files.writeText('f', 'two', by)
    files.editText('f', { find: 'two', put: 'three' }, { ...by, tool: 'file_edit' })
    const [last, first] = store.list()
    expect(last?.about.tool).toBe('file_edit')
    expect(await store.undo(first?.id ?? '')).toMatchObject({ ok: false, conflicts: [{ path: 'f', reason: 'was changed since' }] })
    appendFileSync(at('f'), '!')
    expect(await store.undo(last?.id ?? '')).toMatchObject({ ok: false, conflicts: [{ path: 'f' }] })
    writeFileSync(at('f'), 'three')
    expect(await store.undo(last?.id ?? '')).toMatchObject({ ok: true })
    expect(readFileSync(at('f'), 'utf8')).toBe('two')
    expect(await store.undo(first?.id ?? '')).toMatchObject({ ok: true })
    expect(readFileSync(at('f'), 'utf8')).toBe('one')
  })

  test('writes nothing when the original cannot be kept', async () => {
    await using fixture = await createFixture()
    writeFileSync(fixture.at('f'), 'old')
    const store = (await import('./store.ts')).openChangeStore({ ...fixture.options, folder: join(fixture.base, 'a-file') })
    writeFileSync(join(fixture.base, 'a-file'), '')
    expect(filesOf({ ...fixture, store }).writeText('f', 'new', by)).toMatchObject({
      ok: false,
      message: expect.stringContaining('ENOTDIR'),
    })
    expect(readFileSync(fixture.at('f'), 'utf8')).toBe('old')
    expect(picture(fixture.root)).toHaveProperty('f')
    expect(Object.keys(picture(fixture.root))).toEqual(['f'])
  })
})

describe('a deletion', () => {
  test('of what the gate refuses, of what is outside, of a full folder or of nothing deletes nothing', async () => {
    await using fixture = await createFixture()
    const { root, at } = fixture
    mkdirSync(at('d/.git'), { recursive: true })
    mkdirSync(at('d/forbidden'))
    writeFileSync(at('d/forbidden/x'), 'x')
    writeFileSync(join(fixture.base, 'outside'), 'x')
    symlinkSync(fixture.base, at('door'))
    const before = picture(root)
    const files = filesOf(fixture)
    expect(await files.delete('d', { recursive: true })).toMatchObject({ ok: false, denied: 'forbidden_paths' })
    expect(await files.delete('../outside', { recursive: false })).toMatchObject({ ok: false, denied: 'workspace_only' })
    expect(await files.delete('door/outside', { recursive: false })).toMatchObject({ ok: false, denied: 'workspace_only' })
    expect(await files.delete('d', { recursive: false })).toMatchObject({ ok: false, denied: 'forbidden_paths' })
    expect(await files.delete('.', { recursive: true })).toMatchObject({ ok: false, message: '"." does not name a file or folder' })
    expect(await files.delete('nothing', { recursive: true })).toMatchObject({ ok: false, message: '"nothing" does not exist' })
    mkdirSync(at('full'))
    writeFileSync(at('full/x'), 'x')
    expect(await files.delete('full', { recursive: false })).toMatchObject({
      ok: false,
      message: expect.stringContaining('"recursive": true'),
    })
    Bun.spawnSync(['rm', '-r', at('full')])
    expect(picture(root)).toEqual(before)
    expect(existsSync(join(fixture.base, 'outside'))).toBe(true)
    expect(fixture.store.list()).toEqual([])
  })

  test('of a file, a link or a folder is undone exactly', async () => {
    await using fixture = await createFixture()
    const { root, at, store } = fixture
    mkdirSync(at('d/e'), { recursive: true, mode: 0o711 })
    writeFileSync(at('d/e/f'), 'f')
    writeFileSync(at('x'), 'x')
    symlinkSync('x', at('link'))
    const before = picture(root)
    const files = filesOf(fixture)
    expect(await files.delete('d', { recursive: true, by: { call: 'c', tool: 'file_delete' } })).toEqual({
      ok: true,
      path: 'd',
      files: 1,
      folders: 2,
    })
    expect(await files.delete('link', { recursive: false })).toMatchObject({ ok: true, files: 1 })
    expect(Object.keys(picture(root))).toEqual(['x'])
    for (const { id } of store.list()) expect(await store.undo(id)).toMatchObject({ ok: true })
    expect(picture(root)).toEqual(before)
  })
})
