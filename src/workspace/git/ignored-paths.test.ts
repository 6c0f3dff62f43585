import { afterAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { createIgnoredPaths } from './ignored-paths.ts'

const made: string[] = []
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

const env = (home: string) => ({ PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' })

/** A repository with these files, and a home whose settings git reads. */
function repositoryWith(files: { readonly [path: string]: string }, folder = 'ws') {
  const base = mkdtempSync(join(tmpdir(), 'ignored-'))
  made.push(base)
  const [root, home] = [join(base, 'ws'), join(base, 'home')]
  for (const path of [root, home, join(base, folder)]) mkdirSync(path, { recursive: true })
  const git = (...args: readonly string[]) => spawnSync('git', ['-C', root, ...args], { encoding: 'utf8', env: env(home) })
  git('init', '-q')
  for (const [path, text] of Object.entries(files)) put(join(root, path), text)
  const workspace = join(base, folder)
  const open = () => createIgnoredPaths({ workspace, home, env: {} })
  return { root, home, git, put: (path: string, text: string) => put(join(root, path), text), open }
}

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

test('says by which rule a path is ignored, at the depth and in the order in which git reads them', () => {
  const { open } = repositoryWith({
    '.gitignore': 'dist/\n*.log\n!kept.log\n/out\n',
    'src/.gitignore': '*.gen.ts\n!*.log\n',
    'dist/.gitignore': '!*\n',
  })
  const ignored = open()
  const verdicts = Object.fromEntries(
    ['dist/a.js', 'dist/deep/b', 'a.log', 'kept.log', 'src/a.log', 'src/x.gen.ts', 'x.gen.ts', 'out', 'src/out', 'src/a.ts'].map((path) => [
      path,
      ignored(path, false),
    ]),
  )
  expect(verdicts).toEqual({
    'dist/a.js': 'folder',
    'dist/deep/b': 'folder',
    'a.log': 'name',
    'kept.log': undefined,
    'src/a.log': undefined,
    'src/x.gen.ts': 'name',
    'x.gen.ts': undefined,
    out: 'name',
    'src/out': undefined,
    'src/a.ts': undefined,
  })
  expect([ignored('dist', true), ignored('dist', false), ignored('src', true)]).toEqual(['name', undefined, undefined])
})

test('info/exclude and the own list of the user count, wherever the settings say it is', () => {
  const { open, home, git, root } = repositoryWith({ '.gitignore': '!c.tmp\n' })
  put(join(root, '.git/info/exclude'), '*.ex\n')
  put(join(home, '.config/git/ignore'), '*.tmp\n')
  expect(['a.ex', 'a.tmp', 'c.tmp', 'a.other'].map((path) => open()(path, false))).toEqual(['name', 'name', undefined, undefined])
  put(join(home, 'mine'), '*.other\n')
  git('config', 'core.excludesFile', '~/mine')
  expect(['a.tmp', 'a.other'].map((path) => open()(path, false))).toEqual([undefined, 'name'])
})

test('what git tracks is not ignored, whatever the version of the index', () => {
  const { open, git } = repositoryWith({
    '.gitignore': 'dist/\n',
    'dist/kept.js': 'x',
    'dist/kept-too.js': 'x',
    'dist/new.js': 'x',
    'a/b/c': '',
  })
  git('add', '-f', 'dist/kept.js', 'dist/kept-too.js', 'a')
  for (const version of ['2', '3', '4']) {
    git('update-index', '--index-version', version)
    const found = ['dist/kept.js', 'dist/kept-too.js', 'dist/new.js', 'dist/kept'].map((path) => open()(path, false))
    expect([version, ...found]).toEqual([version, undefined, undefined, 'folder', 'folder'])
  }
})

test('nothing is ignored where that cannot be told', () => {
  const { open, git, put: write, root } = repositoryWith({ '.gitignore': 'dist/\n', 'dist/a': 'x', 'dist/sub/b': 'x', 'b.md': '' })
  git('add', 'b.md')
  expect(open()('dist/sub/b', false)).toBe('folder')
  spawnSync('git', ['init', '-q', join(root, 'dist/sub')])
  expect([open()('dist/sub/b', false), open()('dist/a', false)]).toEqual([undefined, 'folder'])
  git('update-index', '--split-index')
  expect(open()('dist/a', false)).toBeUndefined()
  git('update-index', '--no-split-index')
  write('.git/index', 'DIRC damaged')
  expect(open()('dist/a', false)).toBeUndefined()
  const alone = mkdtempSync(join(tmpdir(), 'ignored-'))
  made.push(alone)
  put(join(alone, '.gitignore'), '*.log\n')
  expect(createIgnoredPaths({ workspace: alone, home: alone, env: {} })('a.log', false)).toBeUndefined()
})

test('a rule for everything does not make a workspace output, nor does a rule that a link names', () => {
  const { open, root, put: write } = repositoryWith({ '.gitignore': '*\n/**\n!src/\n*.log\n', 'build/.gitignore': '*\n', 'src/a': '' })
  expect(['a.md', 'src/a', 'a.log', 'build/x'].map((path) => open()(path, false))).toEqual([undefined, undefined, 'name', 'name'])
  write('rules', '*.md\n')
  symlinkSync('../rules', join(root, 'src/.gitignore'))
  expect(open()('src/x.md', false)).toBeUndefined()
  const inner = repositoryWith({ '.gitignore': 'inner/\n' }, 'ws/inner')
  expect(inner.open()('a.md', false)).toBeUndefined()
  const below = repositoryWith({ '.gitignore': 'dist/\n' }, 'ws/packages/one')
  expect([below.open()('dist/a', false), below.open()('a.md', false)]).toEqual(['folder', undefined])
})

test('property: for rules of every shape nothing is called ignored that git does not ignore', () => {
  const { git, put: write, open } = repositoryWith({})
  const part = fc.constantFrom('a', 'b', 'ab', 'a.b', '*', '*.b', 'a*', '?', '[ab]', '[!a]', '**', 'a b', '\\#a', '{a,b}', '\\!a')
  const rule = fc
    .tuple(fc.constantFrom('', '!', '/', '!/', '#'), fc.array(part, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '/', ' ', '/**'))
    .map(([start, parts, end]) => start + parts.join('/') + end)
  const name = fc.constantFrom('a', 'b', 'ab', 'a.b', 'c', '#a', '!a', 'a b', '{a,b}')
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
  const property = fc.property(
    fc.array(rule, { maxLength: 5 }),
    fc.array(rule, { maxLength: 2 }),
    fc.array(path, { minLength: 1, maxLength: 8 }),
    (root, below, paths) => {
      write('.gitignore', root.join('\n'))
      write('.git/info/exclude', below.join('\n'))
      const said = git('check-ignore', '--no-index', '--', ...paths)
        .stdout.split('\n')
        .map((line) => (line.startsWith('"') ? JSON.parse(line) : line))
      const ignored = open()
      for (const each of paths)
        if (ignored(each, false) !== undefined)
          expect({ root, below, each, said }).toEqual({ root, below, each, said: expect.arrayContaining([each]) })
    },
  )
  fc.assert(property, { numRuns: 60 })
})
