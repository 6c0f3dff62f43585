import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FixtureEntry, review, type Tree } from '../review.fixture.ts'
import { reasonToAsk } from './may-pass.ts'

/** Everyday code of many languages, each kind in the root and below it. */
const project: Tree = Object.fromEntries(
  (
    'package.json README.md index.js index.ts main.py main.rb main.php main.go main.c Main.java main.rs main.sh main.lua main.R main.jl main.pl main.ex main.scala ' +
    'main.clj main.dart main.swift Main.hs main.nim data.json data.yml data.toml data.ini data.xml data.csv ' +
    'src/a.ts src/a.js src/a.cjs src/a.py src/a.rb src/a.php src/a.go src/a.rs src/a.c src/a.lua src/a.sh src/a.R src/a.jl src/a.dart src/a.clj src/a.scala ' +
    'src/Main.java src/a.md src/a.txt src/sub/a.ts test/a.test.ts test/test_a.py docs/a.md data/a.csv data/a.json pkg/__init__.py cmd/x/main.go internal/x/x.go ' +
    'src/main/java/com/acme/A.java lib/a.rb lib/a.ex web/index.html web/site.css packages/one/package.json packages/one/src/a.ts locale/de.yml'
  )
    .split(' ')
    .map((path) => [path, path.endsWith('.json') ? '{}' : 'x']),
)

const fixture = readFileSync(join(import.meta.dir, 'run-unasked.fixture.txt'), 'utf8')
const rows = fixture.split('\n').flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.split('|')[0] ?? '']))

/** Two names of one file: the suffix of a format, a local or distributed version, the case. */
function variants(path: string): readonly string[] {
  const at = path.lastIndexOf('.')
  const hasSuffix = at > path.lastIndexOf('/') + 1
  const middle = (word: string) => (hasSuffix ? [`${path.slice(0, at)}.${word}${path.slice(at)}`] : [])
  return [
    path,
    path.replace(/\.yml$/, '.yaml'),
    path.replace(/\.yaml$/, '.yml'),
    path.replace(/\.(js|cjs|mjs|ts)$/, '.mts'),
    ...['dist', 'local'].flatMap((word) => [`${path}.${word}`, ...middle(word)]),
    path.toUpperCase(),
    path.toLowerCase(),
  ]
}

const asked = (path: string, changed: { readonly [path: string]: FixtureEntry | undefined }, before: Tree = project) =>
  [path, review(before, changed).verdict] as const

describe('files that tools run by their name alone', () => {
  test('the list has all its rows', () => expect(rows.length).toBeGreaterThanOrEqual(200))

  test.each(rows)('%s asks or is refused, new and changed, under each of its names, in the root and beside code', (row) => {
    for (const path of new Set(variants(row))) {
      const name = path.split('/').at(-1) ?? ''
      const places = row.includes('/') ? [path] : [path, `src/${name}`, `packages/one/${name}`, `docs/${name}`]
      for (const place of places) expect(['new', ...asked(place, { [place]: 'x' })]).not.toEqual(['new', place, 'apply'])
      const there = row.includes('/') ? path : name
      const old = { ...project, [there]: 'old' }
      expect(['changed', ...asked(there, { [there]: 'other' }, old)]).not.toEqual(['changed', there, 'apply'])
      expect(['deleted', ...asked(there, { [there]: undefined }, old)]).not.toEqual(['deleted', there, 'apply'])
    }
  })
})

/** `+` a new file, otherwise a changed one. */
const everyday = (
  'src/a.ts src/a.js src/sub/a.ts src/a.py src/a.rb src/a.php src/a.go src/a.rs src/a.c src/a.lua src/a.sh src/a.R src/Main.java main.py index.js index.ts main.go ' +
  'README.md data.csv docs/a.md data/a.csv data/a.json locale/de.yml pkg/__init__.py web/index.html web/site.css test/a.test.ts packages/one/src/a.ts ' +
  '+src/y.ts +src/y.test.ts +src/y.spec.tsx +src/y.d.ts +src/y.module.css +src/new/deep/y.ts +src/__tests__/y.test.js +src/y.snap +test/b.test.ts +test/test_b.py ' +
  '+tests/test_c.py +pkg/util.py +pkg/sub/__init__.py +pkg/sub/models.py +pkg/profile.py +pkg/conf.py +pkg/py.typed.md +src/lib.rs +src/bin/tool.rs +tests/it.rs +main_test.go +util.go ' +
  '+cmd/y/main.go +cmd/y/main_test.go +internal/y/y.go +internal/y/y_test.go +src/main/java/com/acme/B.java +src/main/java/com/acme/sub/C.java ' +
  '+src/test/java/com/acme/BTest.java +Other.java +util.c +util.h +src/b.c +src/b.h +lib/b.rb +lib/b.ex +src/b.php +src/b.lua +src/b.dart +docs/new.md +docs/how/to.md ' +
  '+docs/picture.png +data/new.csv +data/b.json +data/2026/c.json +assets/logo.svg +notes.md +out.txt +report.pdf +archive.tar.gz +new.db +CHANGELOG.md +LICENSE ' +
  '+locale/fr.yml +web/about.html +web/theme.scss +packages/one/src/b.ts +src/query.graphql.md +fixtures/one.txt +backup/a.ts'
).split(' ')

describe('everyday work stays without a question', () => {
  test('the list has at least 60 rows', () => expect(everyday.length).toBeGreaterThanOrEqual(60))

  test.each(everyday)('%s', (row) => {
    const path = row.replace('+', '')
    const before = row.startsWith('+') ? project : { ...project, [path]: 'old' }
    expect(asked(path, { [path]: 'new' }, before)).toEqual([path, 'apply'])
  })
})

test('a new file asks where no rule knows it', () => {
  const paths =
    'strange x.unknown src/x.unknown new.py new.ts new.sh settings.json settings.yml src/conf.ini src/data.json src/x.rkt other/x.cr .hidden src/.hidden .new/x.md ' +
    'WARPED.md packages/one/new.ts packages/one/x.json cypress/x.ts vendor/x.php docs/x.json'
  for (const path of paths.split(' ')) expect(asked(path, { [path]: 'x' })).toEqual([path, 'ask'])
  expect(asked('.new', { '.new': { folder: true } })).toEqual(['.new', 'ask'])
  // Tool configuration alone is no code, a folder is no file, and in an empty workspace only text and data may be new.
  expect(asked('new/x.ts', { 'new/x.ts': 'x' }, { 'vite.config.ts': 'x', 'a.ts': { folder: true } })).toEqual(['new/x.ts', 'ask'])
  expect(asked('src/x.ts', { 'src/x.ts': 'x' }, {})).toEqual(['src/x.ts', 'ask'])
  expect(asked('x.md', { 'x.md': 'x' }, {})).toEqual(['x.md', 'apply'])
  // What the set itself makes does not count as already there.
  expect(asked('a set', { 'new/x.cr': 'x', 'new/y.cr': 'x' })).toEqual(['a set', 'ask'])
})

test('settings in a root ask when they change, those of a folder below do not', () => {
  for (const path of ['data.json', 'data.toml', 'data.ini', 'data.xml']) expect(asked(path, { [path]: 'y' })).toEqual([path, 'ask'])
  for (const path of ['data/a.json', 'locale/de.yml']) expect(asked(path, { [path]: 'y' })).toEqual([path, 'apply'])
})

const ignored = (path: string, isFolder: boolean) =>
  path.startsWith('dist/') ? 'folder' : path === 'dist' || (!isFolder && /\.(log|gen\.ts|json)$/.test(path)) ? 'name' : undefined

describe('what git ignores', () => {
  const verdicts = (changed: { readonly [path: string]: FixtureEntry | undefined }, before: Tree = {}) =>
    (['supervised', 'auto'] as const).map((level) => {
      const { verdict, rule } = review(before, changed, { level, ignored })
      return `${verdict} ${rule}`
    })
  const silent = ['apply changes.ignored', 'apply changes.ignored']

  test('is applied without a question in supervised, too', () => {
    expect(verdicts({ 'dist/a.js': 'x', 'dist/a.o': 'x', 'dist/deep/a.json': 'x' })).toEqual(silent)
    expect(verdicts({ 'logs/app.log': 'x' })).toEqual(silent)
    expect(verdicts({ 'dist/a.js': undefined }, { 'dist/a.js': 'x' })).toEqual(silent)
  })

  test('asks as a whole with anything else', () => {
    expect(verdicts({ 'dist/a.js': 'x', 'src/a.ts': 'y' }, { 'src/a.ts': 'x' })).toEqual([
      'ask changes.supervised',
      'apply changes.harmless',
    ])
    expect(verdicts({ 'dist/a.js': 'x', 'empty/folder': { folder: true } })[0]).toBe('ask changes.supervised')
    expect(verdicts({})[0]).toBe('apply changes.none')
  })

  test('asks when programs run, load or obey it unasked, when it is code beside code, and for links and executables', () => {
    const paths = [
      'dist/.env',
      'dist/node_modules/x/i.js',
      'dist/x.so',
      'dist/Makefile',
      'dist/x.config.js',
      'dist/package.json',
      'dist/venv/a.py',
    ]
    for (const path of paths)
      expect([path, ...verdicts({ [path]: 'x' })]).toEqual([path, 'ask changes.supervised', 'ask changes.not_harmless'])
    for (const entry of [{ file: 'x', mode: 0o755 }, { link: '../src' }, { file: 'x', mode: 0o666 }] as const)
      expect(verdicts({ 'dist/run.js': entry })[0]).toBe('ask changes.supervised')
    const run = (file: string) => ({ file, mode: 0o755 })
    expect(verdicts({ 'dist/run.js': run('b') }, { 'dist/run.js': run('a') })[0]).toBe('ask changes.supervised')
    for (const path of ['src/b.gen.ts', 'src/b.json'])
      expect(verdicts({ [path]: 'x' }, { 'src/a.ts': '', 'src/a.json': '' })).toEqual(['ask changes.supervised', 'apply changes.harmless'])
  })

  test('still asks beyond the limits, with a secret, and by a rule of the operator', () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`dist/${at}.js`, 'x']))
    const none = Object.fromEntries(Object.keys(many).map((path) => [path, undefined]))
    expect(verdicts(none, many)[0]).toBe('ask changes.limits')
    expect(review({}, { 'dist/a.js': 'x' }, { level: 'supervised', ignored, hasSecret: () => true }).rule).toBe('changes.secret')
    const ruled = { verdict: 'deny', rule: 'rule.x', reason: 'y' } as const
    expect(review({}, { 'dist/a.js': 'x' }, { level: 'supervised', ignored, ruled }).verdict).toBe('deny')
  })
})

test('sixty emptied files count like sixty deleted ones; files that keep most of their content do not', () => {
  const before = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`docs/${at}.md`, 'x'.repeat(100)]))
  const all = (text: string) => review(before, Object.fromEntries(Object.keys(before).map((path) => [path, text])))
  for (const text of ['', '\n', 'gone']) expect(all(text)).toMatchObject({ verdict: 'ask', rule: 'changes.limits' })
  expect(all('')).toMatchObject({ reason: '60 files would be deleted or emptied, more than 50' })
  expect(all('y'.repeat(50))).toMatchObject({ verdict: 'apply' })
  const half = Object.fromEntries(Object.keys(before).map((path, at) => [path, at % 2 === 0 ? '' : undefined]))
  expect(review(before, half)).toMatchObject({ rule: 'changes.limits' })
})

test('"always" to a name makes this very path silent, and no executable bit, link or other place', () => {
  const answered = (path: string) => ['.prettierrc', 'package.json', 'run.sh', 'Makefile'].includes(path)
  const verdict = (changed: { readonly [path: string]: FixtureEntry | undefined }, before: Tree = project) =>
    review(before, changed, { answered }).verdict
  for (const path of ['.prettierrc', 'package.json', 'Makefile']) expect([path, verdict({ [path]: 'x' })]).toEqual([path, 'apply'])
  expect(verdict({ 'run.sh': { file: 'b', mode: 0o755 } }, { 'run.sh': { file: 'a', mode: 0o755 } })).toBe('apply')
  for (const path of ['.prettierrc.json', 'src/Makefile', 'src/.prettierrc', 'makefile'])
    expect([path, verdict({ [path]: 'x' })]).toEqual([path, 'ask'])
  expect(verdict({ Makefile: { file: 'x', mode: 0o755 } })).toBe('ask')
  expect(verdict({ Makefile: { link: 'src/a.ts' } })).toBe('ask')
  expect(verdict({ Makefile: 'x', '.eslintrc': 'x' })).toBe('ask')
})

describe('file tools', () => {
  const workspace = '/ws'
  const folders = new Set(Object.keys(project).flatMap((path) => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))))
  const relative = (path: string) => (path === workspace ? '' : path.slice(workspace.length + 1))
  const sightOf = (files: Tree) => ({
    real: (path: string) => path,
    linked: () => [],
    state: (path: string) => {
      const kind = files[relative(path)] !== undefined ? 'file' : folders.has(relative(path)) ? 'folder' : undefined
      return kind && ({ kind, mode: 0o644 } as const)
    },
    names: (folder: string) => {
      const above = relative(folder) === '' ? '' : `${relative(folder)}/`
      const below = [...Object.keys(files), ...folders].filter((path) => path !== '' && path.startsWith(above))
      return [...new Set(below.map((path) => path.slice(above.length).split('/')[0] ?? ''))]
    },
  })

  test('come to the same verdict as a command about the same path', () => {
    for (const row of [...rows, ...everyday.map((path) => path.replace('+', '')), 'x.unknown', 'src/x.json', 'new.ts'])
      for (const files of [project, { ...project, [row]: 'old' }]) {
        const asks = reasonToAsk([`/ws/${row}`], { policy: { workspace }, disk: sightOf(files), around: undefined })
        const byCommand = review(files, { [row]: 'other content' }).verdict
        expect([row, asks === undefined]).toEqual([row, byCommand === 'apply'])
      }
  })

  test('know what git ignores, what was answered, and the content of an executable', () => {
    const around = { ignored, answered: (path: string) => path === 'Makefile' }
    const asks = (path: string, mode = 0o644) => {
      const disk = { ...sightOf({}), state: (at: string) => ({ kind: 'file', mode: at.endsWith('a.md') ? 0o644 : mode }) as const }
      return reasonToAsk(['/ws/docs/a.md', `/ws/${path}`], { policy: { workspace }, disk, around }) !== undefined
    }
    expect(['dist/a.o', 'dist/.env', 'dist/package.json', 'Makefile', 'src/Makefile'].map((path) => asks(path))).toEqual([
      false,
      true,
      true,
      false,
      true,
    ])
    expect([asks('src/a.sh'), asks('src/a.sh', 0o755), asks('Makefile', 0o755)]).toEqual([false, true, false])
  })
})
