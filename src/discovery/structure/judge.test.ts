import { describe, expect, test } from 'bun:test'
import type { Change } from '../../runtime/changes.ts'
import { describeViolation, filesOf, worsened } from './judge.ts'
import { data, type Files, projectOf, rulesOf, ui } from './project.fixture.ts'

const state = (text: string | undefined) =>
  text === undefined ? undefined : ({ kind: text.startsWith('→ ') ? 'link' : 'file', mode: 0o644 } as const)

/** The files of a change set are those whose text differs. */
function worse(toml: string, before: Files, edits: { readonly [path: string]: string | undefined }) {
  const after = Object.fromEntries(
    Object.entries({ ...before, ...edits }).flatMap(([path, text]) => (text === undefined ? [] : [[path, text]])),
  )
  const changes = Object.keys(edits).map((path): Change => ({ path, before: state(before[path]), after: state(edits[path]) }))
  return worsened(rulesOf(toml), { before: projectOf(before), after: projectOf(after), changes }).map(describeViolation)
}

describe('only what a change set makes worse counts', () => {
  const old = { ...data, 'src/ui/a.ts': `import '../db/x'\n`, 'src/ui/b.ts': '' }

  test('an old violation does not block another change of its file', () => {
    expect(worse(ui, old, { 'src/ui/a.ts': `// new\nimport '../db/x'\nimport './b'\n` })).toEqual([])
    expect(worse(ui, old, { 'src/ui/a.ts': '' })).toEqual([])
  })

  test('a new import does, of an old or a new file', () => {
    expect(worse(ui, old, { 'src/ui/a.ts': `import '../db/x'\nimport 'pg'\n` })).toEqual([
      expect.stringContaining('src/ui/a.ts:2 imports "pg"'),
    ])
    expect(worse(ui, old, { 'src/ui/c.ts': `import '../db/x'` })).toHaveLength(1)
    expect(worse(ui, old, { 'src/ui/b.ts': 'import {' })).toEqual([expect.stringContaining('cannot be parsed')])
  })

  test('an alias or a link that leads an old import elsewhere counts', () => {
    const files = {
      ...data,
      'src/x.ts': '',
      'src/ui/a.ts': `import '@/x'; import './d/x'`,
      'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["src/*"]}}}',
    }
    expect(worse(ui, files, { 'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["src/db/*"]}}}' })).toHaveLength(1)
    expect(worse(ui, files, { 'src/ui/d': '→ ../db' })).toHaveLength(1)
  })

  test('a longer file counts when it was too long before, a shorter one does not', () => {
    const toml = '[rules.short]\nfiles = "**"\nmax_lines = 2'
    const files = { 'a.md': '1\n2\n3\n' }
    expect(worse(toml, files, { 'a.md': '1\n2\n4\n' })).toEqual([])
    expect(worse(toml, files, { 'a.md': '1\n2\n3\n4\n' })).toHaveLength(1)
  })

  test('a file more in a full folder counts, and a file for another does not', () => {
    const toml = '[rules.small]\nfiles = "x/*"\nmax_files = 1'
    expect(worse(toml, { 'x/a': '', 'x/b': '' }, { 'x/c': '' })).toHaveLength(1)
    expect(worse(toml, { 'x/a': '', 'x/b': '' }, { 'x/c': '', 'x/b': undefined })).toEqual([])
  })

  test('a deleted test counts, a file that goes with its test does not', () => {
    const toml = '[rules.tested]\nfiles = "routes/**"\nbeside = ["{name}.test.ts", "t/{name}.ts"]'
    const files = { 'routes/a.ts': '', 'routes/a.test.ts': '', 'routes/b.ts': '', 'routes/t/b.ts': '' }
    expect(worse(toml, files, { 'routes/a.test.ts': undefined })).toEqual([expect.stringContaining('routes/a.ts has no')])
    expect(worse(toml, files, { 'routes/t/b.ts': undefined })).toEqual([expect.stringContaining('routes/b.ts has no')])
    expect(worse(toml, files, { 'routes/a.test.ts': undefined, 'routes/a.ts': undefined })).toEqual([])
    expect(worse(toml, files, { 'routes/c.ts': '', 'routes/c.test.ts': '' })).toEqual([])
  })

  test('an import that closes a cycle counts, an old cycle does not', () => {
    const toml = '[rules.no-cycles]\nno_cycles = true'
    const files = { 'a.ts': `import './b'`, 'b.ts': `import './c'`, 'c.ts': '', 'd.ts': `import './e'`, 'e.ts': `import './d'` }
    expect(worse(toml, files, { 'c.ts': `import './a'` })).toEqual([
      'c.ts:1 closes a cycle of imports: c.ts → a.ts → b.ts → c.ts (rule "no-cycles")',
    ])
    expect(worse(toml, files, { 'd.ts': `import './e'\nimport './a'`, 'f.ts': `import './d'` })).toEqual([])
  })

  test('a package that brings links and settings leads to no look at the whole project', () => {
    const before = projectOf({ 'src/a.ts': `import './b'` })
    const after = { ...projectOf({ 'src/a.ts': `import './b'` }), names: () => expect.unreachable() }
    const changes = [
      { path: 'node_modules/a/tsconfig.json', after: { kind: 'file', mode: 0o644 } },
      { path: 'node_modules/.bin/a', after: { kind: 'link', mode: 0o777 } },
    ] as const
    expect(worsened(rulesOf(ui), { before, after, changes })).toEqual([])
  })

  test('git and packages are not looked at', () => {
    expect(
      worse(ui.replace('src/ui/', '**'), data, {
        '.git/a.ts': `import 'pg'`,
        'node_modules/a.ts': `import 'pg'`,
        '/outside/.git/a.ts': `import 'pg'`,
      }),
    ).toEqual([])
  })
})

test('of more than 100,000 files the first ones are listed, and that there are more', () => {
  const files = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, '']))
  const listed = (count: number) => {
    const { files: found, isWhole } = filesOf({
      ...projectOf({}),
      names: (folder) => (folder === '' ? Object.keys(files(count)) : []),
      kind: () => 'file',
    })
    return [found.length, isWhole]
  }
  expect([listed(100_000), listed(100_001)]).toEqual([
    [100_000, true],
    [100_000, false],
  ])
})
