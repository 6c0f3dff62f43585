import { expect, test } from 'bun:test'
import { changesBetween, type Tree } from './review.fixture.ts'
import { describeChanges, summariseChanges } from './review-changes.ts'

const summary = (before: Tree, after: Tree) => summariseChanges(changesBetween(before, after))

test('files are counted by what happened to them, folders only when there is nothing else', () => {
  expect(summary({ 'src/a.ts': '1', b: '1', c: '1' }, { 'src/a.ts': '2', b: '2', 'new/d': '3' })).toBe(
    '4 files: 2 changed, 1 deleted, 1 new: b, c, new/d, src/a.ts',
  )
  expect(summary({}, { a: { folder: true }, b: { folder: true } })).toBe('2 folders: 2 new: a, b')
  expect(summary({}, {})).toBe('nothing changed')
})

test('a deleted and a new file with the same content are one renamed file, but empty ones are not', () => {
  expect(summary({ old: 'text' }, { 'sub/new': 'text' })).toBe('1 file: 1 renamed: old → sub/new')
  expect(summary({ a: 'x', b: 'x' }, { c: 'x', d: 'x', e: 'x' })).toBe('3 files: 2 renamed, 1 new: a → c, b → d, e')
  expect(summary({ old: '' }, { new: '' })).toBe('2 files: 1 new, 1 deleted: new, old')
})

test('modes and times that change alone are said as such, links and pipes too', () => {
  const before = { a: { file: 'x', mode: 0o644 }, l: { link: 'a' } }
  expect(summary(before, { a: { file: 'x', mode: 0o755 }, l: { link: 'b' }, p: { other: true } })).toBe(
    '3 files: 1 mode changed, 1 changed, 1 left out: a, l, p',
  )
  const same = { kind: 'file', mode: 0o644, size: 1, sha256: 'x' } as const
  expect(summariseChanges([{ path: 'a', before: same, after: same }])).toBe('1 file: 1 touched: a')
})

test('the line is one line: names are escaped, only the first are shown', () => {
  const names = Array.from({ length: 9 }, (_, index) => [`f${index}`, 'x'])
  expect(summary({}, Object.fromEntries(names))).toBe('9 files: 9 new: f0, f1, f2, f3, f4, f5, …')
  expect(summary({}, { 'a\nb\u202e': 'x' })).toBe('1 file: 1 new: a\\u{a}b\\u{202e}')
  expect(summary({}, Object.fromEntries(names.map(([name]) => [`${name}${'y'.repeat(200)}`, 'x']))).length).toBeLessThan(700)
})

test('every change is described once, in order', () => {
  const changes = changesBetween({ a: '1', b: '2' }, { b: '3', c: '4', 'd/e': '1' })
  expect(describeChanges(changes).map(({ path, kind }) => [path, kind])).toEqual([
    ['b', 'changed'],
    ['c', 'new'],
    ['d', 'new'],
    ['d/e', 'renamed'],
  ])
})

test('what moves in a repository is told as commits, in the place of objects, logs and the index, and no name can look like another line', () => {
  const git = [
    {
      folder: '.git',
      root: '',
      refs: [
        { name: 'refs/heads/main', from: 'a'.repeat(40), to: 'b'.repeat(40), commits: ['b'.repeat(40), 'c'.repeat(40)] },
        { name: 'refs/tags/v1', to: 'b'.repeat(40), commits: ['b'.repeat(40)] },
        { name: 'refs/heads/x: "safe"', from: 'd'.repeat(40), commits: [] },
        { name: 'refs/stash', from: 'd'.repeat(40), to: 'e'.repeat(40), commits: [] },
      ],
      commits: [
        { id: 'b'.repeat(40), subject: 'fix\u001b[2J" by "root', author: 'A"', files: 1, entries: [] },
        { id: 'c'.repeat(40), subject: 'older', author: 'A', files: 2, entries: [] },
      ],
      staged: [],
      stagedPaths: 3,
      refused: [],
      doubts: [],
      unread: [],
    },
  ]
  const changes = ['.git/objects/ab/cdef', '.git/logs/HEAD', '.git/index', '.git/config', 'a'].map((path) => ({
    path,
    after: { kind: 'file' as const, mode: 0o644 },
  }))
  const told = summariseChanges(changes, git)
  expect(told).toBe(
    'commit bbbbbbb on main: "fix\\u001b[2J\\" by \\"root" by "A\\"", 1 file; commit ccccccc on main, too: "older" by "A", 2 files; tag v1 is new, at bbbbbbb; "x: \\"safe\\"" is deleted; it was ddddddd; and 1 more move; 2 files: 2 new: .git/config, a',
  )
  expect(summariseChanges(changes.slice(0, 2))).toBe("2 paths of git's own")
})
