import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createFixture, type Fixture } from './fixture.ts'
import { isIgnored, parseIgnore } from './walk.ts'

function plant({ root }: Fixture, files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

describe('walk', () => {
  test('links out, forbidden folders, .git and node_modules are not entered, and what the rules refuse is reported', () => {
    using fixture = createFixture()
    plant(fixture, { 'a.txt': '', '.git/x': '', 'node_modules/m/x': '', 'forbidden/x': '', 'deep/er/b.txt': '', '.hidden': '' })
    symlinkSync(fixture.outside, join(fixture.root, 'door'))
    const skipped: string[] = []
    expect([...fixture.workspace.walk('.', { onSkip: (path, why) => skipped.push(`${path}: ${why}`) })]).toEqual([
      '.hidden',
      'a.txt',
      'deep/er/b.txt',
    ])
    expect(skipped).toEqual(['forbidden: forbidden_paths'])
    const refused: string[] = []
    expect([...fixture.workspace.walk('./outside', { onSkip: (path) => refused.push(path) })]).toEqual([])
    expect(refused).toEqual(['./outside'])
  })

  test('.gitignore files count from their own folder, also above the start of the walk', () => {
    using fixture = createFixture()
    plant(fixture, {
      '.gitignore': '*.log\n/build/\n!keep.log\n',
      'x.log': '',
      'keep.log': '',
      'build/out': '',
      'sub/build/in': '',
      'sub/.gitignore': '!y.log\nsecret?\n',
      'sub/y.log': '',
      'sub/secret1': '',
      'sub/z.log': '',
    })
    const all = ['.gitignore', 'keep.log', 'sub/.gitignore', 'sub/build/in', 'sub/y.log']
    expect([...fixture.workspace.walk('.')]).toEqual(all)
    expect([...fixture.workspace.walk('sub')]).toEqual(all.filter((path) => path.startsWith('sub/')))
    expect([...fixture.workspace.walk('sub/z.log')]).toEqual(['sub/z.log'])
  })

  test('leaving a walk early gives all descriptors back', () => {
    using fixture = createFixture()
    plant(fixture, { 'a/b/c/d/e/f.txt': '' })
    for (let i = 0; i < 2_000; i++) for (const _ of fixture.workspace.walk('.')) break
    expect([...fixture.workspace.walk('.')]).toEqual(['a/b/c/d/e/f.txt'])
  })

  test('ignore patterns mean what git means by them', () => {
    const says = (pattern: string, path: string, folder = false) => isIgnored([{ from: '', rules: parseIgnore(pattern) }], path, folder)
    expect(says('# x', '# x')).toBe(false)
    expect(says('*.o', 'a/b.o')).toBe(true)
    expect(says('*.o', 'a/.o.o')).toBe(true)
    expect(says('/b.o', 'a/b.o')).toBe(false)
    expect(says('a/*.o', 'a/b/c.o')).toBe(false)
    expect(says('a/**/c.o', 'a/x/y/c.o')).toBe(true)
    expect([says('/!x', 'y'), says('/!x', '!x')]).toEqual([false, true])
    expect(says('dir/', 'dir')).toBe(false)
    expect(says('dir/', 'x/dir', true)).toBe(true)
    expect(says('\\#x', '#x')).toBe(true)
    expect(says('{a,b}', 'a')).toBe(false)
    expect(says('{a,b}', '{a,b}')).toBe(true)
    expect(says('[ab].c', 'a.c')).toBe(true)
    expect(says('a.c  ', 'a.c')).toBe(true)
    expect(says('*\n!b', 'b')).toBe(false)
  })
})

describe('list', () => {
  test('ten thousand entries are counted exactly and shown up to the limit, in order', () => {
    using fixture = createFixture()
    mkdirSync(join(fixture.root, 'many'))
    for (let i = 0; i < 10_000; i++) writeFileSync(join(fixture.root, 'many', `f${String(i).padStart(5, '0')}`), '')
    const listing = fixture.workspace.list('many', { maxEntries: 3 })
    expect(listing).toMatchObject({ ok: true, total: 10_000, complete: true })
    expect(listing.ok && listing.entries.map((entry) => entry.path)).toEqual(['f00000', 'f00001', 'f00002'])
  })

  test('types, sizes and depth are shown; a link is not followed and a forbidden folder not opened', () => {
    using fixture = createFixture()
    plant(fixture, { 'a/b/c': '123', 'a/d': '', 'forbidden/x': '' })
    symlinkSync(fixture.outside, join(fixture.root, 'link'))
    expect(fixture.workspace.list('.', { depth: 2, maxEntries: 100 })).toEqual({
      ok: true,
      path: '.',
      entries: [
        { path: 'a', type: 'directory', size: undefined },
        { path: 'a/b', type: 'directory', size: undefined },
        { path: 'a/d', type: 'file', size: 0 },
        { path: 'forbidden', type: 'directory', size: undefined },
        { path: 'link', type: 'link', size: undefined },
      ],
      total: 5,
      complete: false,
    })
    expect(fixture.workspace.list('a/d', { maxEntries: 1 })).toMatchObject({ ok: false, message: '"a/d" is a file, not a folder' })
  })
})
