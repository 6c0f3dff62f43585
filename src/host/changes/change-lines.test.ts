import { describe, expect, test } from 'bun:test'
import type { ChangeSet } from '../../runtime/changes.ts'
import { changeLines, questionFold, totals, unfolded } from './change-lines.ts'
import { fileDiffs } from './file-diff.ts'
import { changeSetOf, folder, type Sides } from './fixture.ts'

const shown = (sides: Sides, fold = unfolded) => changeLines(fileDiffs(changeSetOf(sides)), fold).map(({ text }) => text)

describe('what is hidden is made visible', () => {
  test('in names, targets and lines: controls, directions, escapes, carriage returns', () => {
    const lines = shown({
      'a\u202e\ntxt': [null, 'one\u001b[2Jtwo\u202e\n'],
      x: [null, { link: 'y\u001b[31m' }],
      'crlf.txt': ['same\n', 'same\r\n'],
    })
    expect(lines).toEqual([
      'new a\\u{202e}\\u{a}txt (+1 −0)',
      '@@ -0,0 +1 @@',
      '+one\\u001b[2Jtwo\\u202e',
      'new link x → y\\u{1b}[31m (+1 −0)',
      '@@ -0,0 +1 @@',
      '+y\\u001b[31m',
      '\\ No newline at end of file',
      'changed crlf.txt (+1 −1)',
      '@@ -1 +1 @@',
      '-same',
      '+same\\u000d',
    ])
  })

  test('permissions that a program or another user gets', () => {
    expect(
      shown({
        'run.sh': [
          { mode: 0o644, text: 'x' },
          { mode: 0o755, text: 'x' },
        ],
        'new.sh': [null, { mode: 0o755, text: '' }],
        s: [null, { mode: 0o4644, text: '' }],
      }),
    ).toEqual(['changed run.sh, mode 644 → 755', 'new new.sh (empty), mode 755 (executable)', 'new s (empty), mode 4644'])
  })
})

test('each kind of change is named', () => {
  expect(
    shown({
      dir: [null, folder],
      'dir/a.txt': [null, 'a\n'],
      'b.txt': ['b\n', null],
      'old-dir': [folder, null],
      'logo.png': [new Uint8Array([0, 1, 2]), new Uint8Array([0, 9])],
      'latin1.txt': [null, new Uint8Array([0x66, 0xfc, 0x72])],
      'was-file': ['x\n', { link: 'elsewhere' }],
    }),
  ).toEqual([
    'new folder dir',
    'new dir/a.txt (+1 −0)',
    '@@ -0,0 +1 @@',
    '+a',
    'deleted b.txt (+0 −1)',
    '@@ -1 +0,0 @@',
    '-b',
    'deleted folder old-dir',
    'changed binary file logo.png (3 → 2 bytes)',
    'new binary file latin1.txt (3 bytes)',
    'deleted was-file (+0 −1)',
    '@@ -1 +0,0 @@',
    '-x',
    'new link was-file → elsewhere (+1 −0)',
    '@@ -0,0 +1 @@',
    '+elsewhere',
    '\\ No newline at end of file',
  ])
})

describe('a renamed file', () => {
  const page = Array.from({ length: 10 }, (_, at) => `line ${at}\n`).join('')
  test('is found by its digest, by its name among equals, and by its lines', () => {
    expect(
      shown({
        'a/x.txt': ['same\n', null],
        'a/y.txt': ['same\n', null],
        'b/y.txt': [null, 'same\n'],
        'old.txt': [page, null],
        'new.txt': [null, `${page}more\n`],
      }),
    ).toEqual([
      'deleted a/x.txt (+0 −1)',
      '@@ -1 +0,0 @@',
      '-same',
      'renamed a/y.txt → b/y.txt',
      'renamed old.txt → new.txt (+1 −0)',
      '@@ -8,3 +8,4 @@',
      ' line 7',
      ' line 8',
      ' line 9',
      '+more',
    ])
  })
  test('is not made of two empty files, nor of two that have little in common', () => {
    expect(shown({ a: ['', null], b: [null, ''] })).toEqual(['deleted a', 'new b (empty)'])
    expect(totals(fileDiffs(changeSetOf({ a: [page, null], b: [null, 'other\nline 1\n'] })))).toBe('2 paths: 1 new, 1 deleted (+2 −10)')
  })
})

describe('a long change set is folded, and nothing disappears without a count', () => {
  const page = Array.from({ length: 500 }, (_, at) => `line ${at}\n`).join('')
  test('of one file', () => {
    const lines = shown({ 'a.txt': [null, page] }, questionFold)
    expect(lines).toHaveLength(42)
    expect(lines.at(-1)).toBe('… 461 more lines not shown (+461 −0)')
  })
  test('of many files: later files keep their headline, then their number', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at): [string, [null, string]] => [`f${at}`, [null, page]]))
    const lines = shown(many, questionFold)
    expect(lines.length).toBeLessThan(220)
    expect(lines.filter((line) => line.startsWith('new f'))).toHaveLength(questionFold.files)
    expect(lines.at(-1)).toBe('… and 60 paths: 60 new (+30,000 −0)')
    expect(lines).toContain('… 501 lines not shown (+500 −0)')
  })
  test('of a long line, whose end is shown too', () => {
    const [, , line = ''] = shown({ a: [null, `${'x'.repeat(100_000)};evil()\n`] }, questionFold)
    expect(line).toEndWith(';evil()')
    expect(line).toContain('99,607 characters not shown')
    expect(line.length).toBeLessThan(500)
  })
  test('a file too large to compare says so, with its sizes', () => {
    const large = 'x'.repeat(1024 * 1024 + 1)
    expect(shown({ a: ['small\n', large] })).toEqual(['changed a (6 → 1,048,577 bytes; content not shown)'])
  })
})

test('10,000 changed lines are ready in little time', () => {
  const numbered = Array.from({ length: 10_000 }, (_, at) => `line ${at}\n`)
  const set: ChangeSet = changeSetOf({ a: [numbered.join(''), numbered.map((line, at) => (at % 2 ? line : `x${line}`)).join('')] })
  changeLines(fileDiffs(set), questionFold)
  const start = process.cpuUsage().user
  changeLines(fileDiffs(set), questionFold)
  expect((process.cpuUsage().user - start) / 1000).toBeLessThan(150)
})
