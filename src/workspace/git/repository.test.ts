import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { judgePath } from '../../security/targets/path.ts'
import type { Check, Workspace } from '../contract.ts'
import { flags, hold } from '../descriptor.ts'
import { createLocator } from '../locate-path.ts'
import { sweepTemporary } from '../sweep.ts'
import { openWorkspace } from '../workspace.ts'
import { claim } from './repository.ts'

type Ground = Disposable & { readonly root: string; readonly canary: string; readonly files: Workspace; readonly check: Check }

/** A workspace behind the real path rules, in a folder that no repository contains. */
function ground(): Ground {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-repository-')))
  const root = join(base, 'workspace')
  for (const folder of [root, join(base, 'home')]) mkdirSync(folder)
  const policy = { workspace: root, workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home: join(base, 'home') }
  const check: Check = (path, access) => judgePath({ path, access, cwd: root, policy })
  const files = openWorkspace({ root, check })
  return { root, canary: join(base, 'ran'), files, check, [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }) }
}

const base = ({ root }: Ground) => dirname(root)

function git(at: Ground, cwd: string, ...words: readonly string[]) {
  const env = { PATH: '/usr/bin:/bin', HOME: join(base(at), 'home'), GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: base(at) }
  const all = ['git', '-c', 'safe.directory=*', ...words]
  return Bun.spawnSync(all, { cwd, env, stdout: 'pipe', stderr: 'pipe' })
}

/** Git settings that make git run a program in as many ways as possible. */
function trap({ canary }: Ground): string {
  const run = `touch '${canary}'; cat`
  return [
    '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .',
    `\tfsmonitor = "${run} #"\n\tpager = "${run} #"\n\teditor = "${run} #"\n\tsshCommand = "${run} #"`,
    `[pager]\n\tstatus = "${run} #"\n[alias]\n\tx = "!${run}"\n[diff]\n\texternal = "${run} #"\n[filter "f"]\n\tclean = "${run} #"\n`,
  ].join('\n')
}

/** Commands that a person runs without suspicion in every folder of the workspace. */
function lookAround(at: Ground): void {
  const folders = readdirSync(at.root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !`${entry.parentPath}/${entry.name}/`.includes('/.git/'))
    .map(({ parentPath, name }) => join(parentPath, name))
  for (const cwd of [at.root, ...folders]) for (const word of ['status', 'log', 'diff']) git(at, cwd, word)
}

function plant(at: Ground, path: string, text = ''): void {
  mkdirSync(dirname(join(at.root, path)), { recursive: true })
  writeFileSync(join(at.root, path), text)
}

const head = 'ref: refs/heads/main\n'

const repository = (folder: string, config: string): readonly (readonly [string, string])[] => [
  [`${folder}HEAD`, head],
  [`${folder}config`, config],
  [`${folder}objects/.keep`, ''],
  [`${folder}refs/.keep`, ''],
]

describe('a repository without the name .git', () => {
  test.each([
    ['with all its parts', (at: Ground) => repository('lib/', trap(at))],
    [
      'whose parts lie elsewhere',
      (at: Ground) => [
        ...repository('lib/elsewhere/', '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n'),
        ['lib/HEAD', head] as const,
        ['lib/commondir', 'elsewhere'] as const,
        ['lib/config.worktree', trap(at)] as const,
      ],
    ],
  ])('%s really runs a program at "git status": the danger is no invention', (_, files) => {
    using at = ground()
    for (const [path, text] of files(at)) plant(at, path, text)
    git(at, join(at.root, 'lib'), 'status')
    expect(existsSync(at.canary)).toBe(true)
  })

  test('the write that would complete it is refused, says so, and leaves nothing behind', () => {
    using at = ground()
    for (const path of ['lib/HEAD', 'lib/config', 'lib/objects/.k']) expect(at.files.writeText(path, 'x')).toMatchObject({ ok: true })
    expect(at.files.writeText('lib/refs/heads/main', 'x')).toEqual({
      ok: false,
      denied: 'path.protected',
      message: expect.stringMatching(/^"lib\/refs\/heads\/main" would make the folder "lib" a git repository .*ask the operator/),
    })
    expect(readdirSync(join(at.root, 'lib')).toSorted()).toEqual(['HEAD', 'config', 'objects'])
  })

  test('one that is there is left alone, all of it, but not a work tree that lies in it', () => {
    using at = ground()
    for (const [path, text] of repository('it.git/', '')) plant(at, path, text)
    plant(at, 'it.git/main/.git', 'gitdir: ../worktrees/main\n')
    for (const path of [
      'it.git/config',
      'it.git/HEAD',
      'it.git/hooks/post-commit',
      'it.git/worktrees/main/commondir',
      'it.git/new/deep/file',
    ])
      expect(at.files.writeText(path, 'x')).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(at.files.editText('it.git/HEAD', { find: 'main', put: 'x' })).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(existsSync(join(at.root, 'it.git/hooks'))).toBe(false)
    expect(at.files.writeText('it.git/main/src/a.txt', 'x')).toMatchObject({ ok: true })
  })

  test('everyday names stay free: any of them alone, objects beside refs, HEAD beside objects', () => {
    for (const paths of [
      ['HEAD'],
      ['objects/a'],
      ['refs/a'],
      ['commondir'],
      ['objects/a', 'refs/a', 'config'],
      ['HEAD', 'objects/a', 'sub/refs/a'],
    ]) {
      using at = ground()
      for (const path of paths) expect(at.files.writeText(path, 'x')).toMatchObject({ ok: true, created: true })
      for (const path of paths) expect(at.files.editText(path, { find: 'x', put: 'y' })).toMatchObject({ ok: true })
      expect(readdirSync(at.root).filter((name) => name.startsWith('.braidclaw'))).toEqual([])
    }
  })

  test('neither a symbolic link nor another spelling completes it', () => {
    using at = ground()
    for (const path of ['a/HEAD', 'a/objects/k', 'b/HEAD', 'b/refs/k']) plant(at, path, 'x')
    symlinkSync('../later', join(at.root, 'a/refs'))
    symlinkSync('b', join(at.root, 'link'))
    for (const path of ['a/notes', 'a/refs/k', 'link/objects/k', 'b/Objects/k', 'b/COMMONDIR', 'b/objects./k', 'b/ob\u200cjects/k']) {
      expect([path, at.files.writeText(path, 'x')]).toEqual([path, expect.objectContaining({ ok: path === 'a/refs/k' })])
    }
    lookAround(at)
  })
})

describe('what the settings of a repository name', () => {
  test.each([
    ['the workspace', '.git/config', '', ''],
    ['a folder in it', 'sub/.git/config', 'sub/', ''],
    ['the folder above it', '../.git/config', '', 'workspace/'],
  ])('is not written, in a repository of %s', (_, config, folder, prefix) => {
    using at = ground()
    const include = `../${prefix}more`
    plant(
      at,
      config,
      `[core]\n\thooksPath = ${prefix}tools/hooks\n\tfsmonitor = ./${prefix}bin/monitor --fast\n[include]\n\tpath = ${include}\n`,
    )
    for (const name of ['tools/hooks/pre-commit', 'bin/monitor', 'more'])
      expect([name, at.files.writeText(folder + name, 'x')]).toEqual([
        name,
        { ok: false, denied: 'path.protected', message: expect.stringContaining('the settings of a git repository name') },
      ])
    for (const name of ['tools/other', 'bin/x', 'tools/hooksx']) expect(at.files.writeText(folder + name, 'x')).toMatchObject({ ok: true })
  })

  test('is not written beside the repository either, when its settings lead out of its folder', () => {
    using at = ground()
    plant(at, 'sub/.git/config', '[core]\n\thooksPath = ../tools/hooks\n[include]\n\tpath = ../../shared/more\n')
    for (const name of ['tools/hooks/pre-commit', 'shared/more'])
      expect(at.files.writeText(name, 'x')).toMatchObject({ ok: false, denied: 'path.protected' })
    for (const name of ['tools/other', 'shared/x']) expect(at.files.writeText(name, 'x')).toMatchObject({ ok: true })
  })

  test('is not written in a linked worktree, where the settings are those of the repository elsewhere', () => {
    using at = ground()
    git(at, base(at), 'init', '-q', 'main')
    for (const words of [
      ['config', 'core.hooksPath', 'hooks'],
      ['-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-q', '--allow-empty', '-m', 'x'],
      ['worktree', 'add', '-q', join(at.root, 'wt')],
    ])
      expect(git(at, join(base(at), 'main'), ...words).exitCode).toBe(0)
    expect(at.files.writeText('wt/hooks/pre-commit', 'x')).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(at.files.writeText('wt/src/a', 'x')).toMatchObject({ ok: true })
  })
})

const shapes = ['HEAD', 'config', 'config.worktree', 'objects/.k', 'refs/.k', 'commondir']
const others = [
  ...['head', 'OBJECTS/pack/p', 'refs/heads/main', 'gitdir', 'packed-refs', 'index', 'info/attributes', 'hooks/post-index-change'],
  ...['.git', '.git/HEAD', '.git/config', '.GIT/config', '.git./HEAD', '.git/refs/.k', '.git/objects/.k', '.git/commondir'],
  ...['.gitmodules', '.gitattributes', 'worktrees/w/commondir'],
]

/** Most parts of a repository in one folder, in any order, with other writes before and between them. */
const sequences = fc
  .record({
    folder: fc.constantFrom('', 'd/', 'd/e/'),
    shape: fc.shuffledSubarray(shapes, { minLength: 4 }),
    noise: fc.array(fc.tuple(fc.constantFrom('', 'd/'), fc.constantFrom(...others)), { maxLength: 4 }),
    late: fc.boolean(),
  })
  .map(({ folder, shape, noise, late }) => {
    const [own, more] = [shape.map((name) => folder + name), noise.map(([above, name]) => above + name)]
    return late ? [...own, ...more] : [...more, ...own]
  })

describe('whatever is written, in whatever order', () => {
  test.each([
    ['no repository', false],
    ["the user's repository", true],
  ])(
    'git runs nothing where there was %s',
    (_, init) => {
      fc.assert(
        fc.property(sequences, (paths) => {
          using at = ground()
          if (init) git(at, at.root, 'init', '-q')
          const config = `${trap(at)}[extensions]\n\tworktreeConfig = true\n`
          for (const path of paths) {
            const text = path.includes('config') ? config : path.includes('commondir') ? '.' : path.includes('.git') ? 'x' : head
            at.files.writeText(path, text)
            at.files.editText(path, { find: head, put: `${head}\n` })
          }
          lookAround(at)
          expect(existsSync(at.canary)).toBe(false)
        }),
        { numRuns: 20 },
      )
    },
    120_000,
  )

  test('exactly the write that completes one is refused', () => {
    const parts = ['HEAD', 'objects/k', 'refs/k', 'commondir', 'config', 'a.txt'] as const
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...parts)), (writes) => {
        using at = ground()
        const there = new Set<string>()
        const complete = () => there.has('HEAD') && (there.has('commondir') || (there.has('objects/k') && there.has('refs/k')))
        for (const path of writes) {
          there.add(path)
          if (complete()) there.delete(path)
          expect(at.files.writeText(path, 'x').ok).toBe(there.has(path))
        }
      }),
      { numRuns: 40 },
    )
  }, 120_000)
})

describe('two writers at once', () => {
  /** A program that is about to add a name to the folder `d`. */
  const about = (at: Ground, name: string) => {
    using folder = hold(join(at.root, 'd'), flags.folder)
    return claim({ locator: createLocator({ root: at.root, check: at.check }), given: name, folder, adds: name })
  }

  test.each([
    ['objects', 'refs', ['HEAD']],
    ['refs', 'HEAD', ['objects']],
    ['HEAD', 'objects', ['refs']],
    ['HEAD', 'commondir', []],
    ['commondir', 'HEAD', ['refs']],
  ])('while one is about to add %s, another may not add %s; when the first has given up, it may', (first, second, there) => {
    using at = ground()
    for (const name of ['a.txt', ...there]) plant(at, `d/${name}`)
    const claimed = about(at, first)
    if (!claimed.ok) throw new Error(claimed.message)
    expect(about(at, second)).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(at.files.writeText(`d/${second}`, 'x')).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(at.files.writeText('d/b.txt', 'x')).toMatchObject({ ok: true })
    claimed[Symbol.dispose]()
    expect(at.files.writeText(`d/${second}`, 'x')).toMatchObject({ ok: true })
    expect(about(at, first)).toMatchObject({ ok: false, denied: 'path.protected' })
    expect(readdirSync(join(at.root, 'd')).toSorted()).toEqual(['a.txt', 'b.txt', second, ...there].toSorted())
  })

  test('two that look at the same moment are both refused rather than both let through', () => {
    using at = ground()
    plant(at, 'd/HEAD')
    const seen: boolean[] = []
    const check: Check = (path, access) => {
      // The write asks the gate about the folder right before it announces the new name.
      if (path.endsWith('/d/objects')) seen.push(about(at, 'refs').ok)
      return at.check(path, access)
    }
    const outer = openWorkspace({ root: at.root, check }).writeText('d/objects/k', 'x')
    expect([outer.ok, seen.includes(true)]).toEqual([false, true])
    expect(existsSync(join(at.root, 'd/objects'))).toBe(false)
  })

  test('what a crash leaves is swept after an hour, like every temporary file', () => {
    using at = ground()
    plant(at, 'd/HEAD')
    plant(at, `d/.braidclaw-${crypto.randomUUID()}.objects.tmp`)
    expect(at.files.writeText('d/refs', 'x')).toMatchObject({ ok: false, denied: 'path.protected' })
    using folder = hold(join(at.root, 'd'), flags.folder)
    sweepTemporary(folder, Date.now() + 2 * 60 * 60 * 1_000)
    expect(at.files.writeText('d/refs', 'x')).toMatchObject({ ok: true })
  })
})
