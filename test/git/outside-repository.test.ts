/** Git works in a workspace whose repository lies outside it; a file that only claims a repository opens nothing. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { picture } from '../../src/workspace/changes/fixture.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'
import { byUser, identity, repository } from './outside.ts'

const real = test.if(needs('bwrap') && needs('git'))

const run = async (at: Nest, command: string, folder = at.workspace) =>
  (
    await turn(at, [call('shell', { command }), { text: 'It said: {{last_tool_result}}' }], ['--autonomy', 'full', '-C', folder], {
      cwd: folder,
    })
  ).stdout
const look = 'git log --format=%s; git status --short; git diff'

describe('what opens nothing', () => {
  real.each([
    ['the repository of another folder', (at: Nest) => join(repository(at, 'other'), '.git')],
    ['the keys of the user', (at: Nest) => join(at.home, '.ssh')],
    ['the home of BraidClaw', (at: Nest) => join(at.home, '.braidclaw')],
    ['the root', () => '/'],
    [
      'a link to a repository',
      (at: Nest) => {
        symlinkSync(join(repository(at, 'other'), '.git'), join(at.workspace, 'link'))
        return 'link'
      },
    ],
    [
      'a folder of the workspace whose common folder is elsewhere',
      (at: Nest) => {
        mkdirSync(join(at.workspace, 'fake'))
        for (const [name, text] of [
          ['HEAD', 'ref: refs/heads/main\n'],
          ['commondir', `${repository(at, 'other')}/.git\n`],
          ['gitdir', `${at.workspace}/.git\n`],
        ] as const)
          writeFileSync(join(at.workspace, 'fake', name), text)
        return 'fake'
      },
    ],
  ])(
    'a planted .git file that names %s',
    async (_, target) => {
      using at = home()
      mkdirSync(join(at.home, '.ssh'))
      writeFileSync(join(at.home, '.ssh/HEAD'), 'a private key')
      const path = target(at)
      writeFileSync(join(at.workspace, '.git'), `gitdir: ${path}\n`)
      // Even with the index of the other repository's file, of the same name and content.
      mkdirSync(join(at.workspace, 'pkg'))
      writeFileSync(join(at.workspace, 'a.txt'), 'private a\n')
      const out = await run(at, `${look}; cat ${path}/HEAD; ls -A ${path}`)
      for (const secret of ['the only commit', 'refs/heads/hidden', 'private key', 'receipts', 'boot\n']) expect(out).not.toContain(secret)
    },
    60_000,
  )

  real(
    'alternates, before a person trusts the folder',
    async () => {
      using at = home()
      const other = repository(at, 'other')
      byUser(at, at.workspace, 'init', '-q')
      mkdirSync(join(at.workspace, '.git/objects/info'), { recursive: true })
      writeFileSync(join(at.workspace, '.git/objects/info/alternates'), `${other}/.git/objects\n`)
      const id = byUser(at, other, 'rev-parse', 'HEAD').trim()
      expect(await run(at, `git cat-file -p ${id}; ls ${other}/.git/objects`)).not.toContain('the only commit')
    },
    60_000,
  )
})

/** The folder in which a turn works, a tracked file in it, and everything that the repository has. */
type Layout = { readonly folder: string; readonly file: string; readonly kept: readonly string[] }

const layouts: readonly (readonly [name: string, make: (at: Nest) => Layout])[] = [
  [
    'a linked worktree',
    (at) => {
      const [main, folder] = [repository(at, 'main'), join(realpathSync(at.dir), 'linked')]
      byUser(at, main, 'worktree', 'add', '-q', folder)
      return { folder, file: 'a.txt', kept: [main, folder] }
    },
  ],
  [
    'a linked worktree of a bare repository',
    (at) => {
      const [bare, folder] = [join(realpathSync(at.dir), 'bare.git'), join(realpathSync(at.dir), 'of-bare')]
      byUser(at, at.dir, 'clone', '-q', '--bare', repository(at, 'main'), bare)
      byUser(at, bare, 'worktree', 'add', '-q', folder)
      return { folder, file: 'pkg/b.txt', kept: [bare, folder] }
    },
  ],
  [
    'a separate git directory',
    (at) => {
      const elsewhere = join(realpathSync(at.dir), 'elsewhere')
      const folder = repository(at, 'separate', '--separate-git-dir', elsewhere)
      return { folder, file: 'a.txt', kept: [elsewhere, folder] }
    },
  ],
  [
    'a submodule',
    (at) => {
      const upper = repository(at, 'upper')
      byUser(at, upper, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', repository(at, 'lower'), 'sub')
      return { folder: join(upper, 'sub'), file: 'a.txt', kept: [upper] }
    },
  ],
  [
    'a folder of a repository',
    (at) => {
      const main = repository(at, 'main')
      return { folder: join(main, 'pkg'), file: 'b.txt', kept: [main] }
    },
  ],
]

const pictures = ({ kept }: Layout) => kept.map(picture)

/** The user's own git finds everything in order. */
function isWhole(at: Nest, { folder }: Layout): void {
  expect(byUser(at, folder, 'fsck', '--strict', '--no-dangling')).toBe('')
  expect(byUser(at, folder, 'status', '--porcelain')).toBe('')
  expect(byUser(at, folder, 'ls-files', '-v', ':/').replaceAll(/^H .*\n/gm, '')).toBe('')
}

describe.each(layouts)('in %s', (_, make) => {
  real(
    'what there is can be looked at, and commits, branches, merges and stashes are applied, whole, and undone to the byte',
    async () => {
      using at = home()
      const there = make(at)
      const { folder, file } = there
      const name = byUser(at, folder, 'branch', '--show-current').trim()
      writeFileSync(join(folder, file), 'changed\n')
      const states = [pictures(there)]
      const seen = await run(at, `${identity}${look}; git add ${file} && git commit -qm two`, folder)
      for (const words of ['the only commit', ` M ${file}`, '+changed']) expect(seen).toContain(words)
      for (const words of [' D ', 'fatal', 'outside']) expect(seen).not.toContain(words)
      expect(byUser(at, folder, 'log', '--format=%s')).toBe('two\nthe only commit\n')
      expect(byUser(at, folder, 'show', '--format=', '--name-status')).toMatch(/^M\t\S+\n$/)
      isWhole(at, there)
      states.push(pictures(there))
      const more = `git checkout -q -b side && echo side > new.txt && git add new.txt && git commit -qm side && git checkout -q ${name} &&
        echo here >> ${file} && git commit -qam here && git merge -q --no-edit side && git branch -q -d side &&
        echo kept >> ${file} && git stash -q && git stash pop -q && git commit -qam stashed && git tag v1 && git rm -q new.txt && git commit -qm removed && git gc -q`
      expect(await run(at, identity + more, folder)).toBe('It said: (no output)\n')
      expect(byUser(at, folder, 'log', '--first-parent', '--format=%s', '-4')).toMatch(/^removed\nstashed\nMerge branch 'side'.*\nhere\n$/)
      expect(readFileSync(join(folder, file), 'utf8')).toBe('changed\nhere\nkept\n')
      isWhole(at, there)
      for (const before of states.toReversed()) {
        expect(await at.run(['undo', '-C', folder], { cwd: folder })).toMatchObject({ code: 0 })
        expect(pictures(there)).toEqual(before)
      }
    },
    60_000,
  )
})

describe('what a repository outside also needs', () => {
  real(
    'a worktree that was moved with its files, and a shared clone in a folder that a person trusts',
    async () => {
      using at = home()
      const separate = repository(at, 'separate', '--separate-git-dir', join(at.dir, 'elsewhere.git'))
      renameSync(separate, join(at.dir, 'moved'))
      expect(await run(at, look, join(at.dir, 'moved'))).toContain('the only commit')
      const clone = join(at.dir, 'clone')
      byUser(at, at.dir, 'clone', '-q', '--shared', repository(at, 'main'), clone)
      expect(await run(at, 'git log', clone)).toContain('braidclaw trust')
      await at.run(['trust', clone])
      expect(await run(at, `${identity}echo 1 > a.txt && git commit -qam two`, clone)).toContain('It said: (no output)')
      expect(byUser(at, clone, 'log', '-1', '--format=%s')).toBe('two\n')
    },
    60_000,
  )

  real(
    'a folder of a repository: files beside it are not seen, stay what they are, and keep what the user did meanwhile',
    async () => {
      using at = home()
      const main = repository(at, 'main')
      const folder = join(main, 'pkg')
      expect(await run(at, 'cat ../a.txt; ls -A ..', folder)).not.toContain('private a')
      writeFileSync(join(main, 'a.txt'), 'committed meanwhile\n')
      byUser(at, main, 'commit', '-qam', 'another')
      writeFileSync(join(main, 'c.txt'), 'staged\n')
      byUser(at, main, 'add', 'c.txt')
      byUser(at, main, 'update-index', '--assume-unchanged', 'a.txt')
      expect(await run(at, `${look}; git diff --cached --stat`, folder)).not.toContain('a.txt')
      expect(await run(at, `${identity}echo 2 > b.txt && git add -A . && git commit -qm two -- b.txt`, folder)).toContain('(no output)')
      expect(byUser(at, main, 'show', '--format=%s', '--name-status')).toBe('two\n\nM\tpkg/b.txt\n')
      expect(byUser(at, main, 'status', '--porcelain')).toBe('A  c.txt\n')
      expect(byUser(at, main, 'ls-files', '-v')).toBe('h a.txt\nH c.txt\nH pkg/b.txt\n')
    },
    60_000,
  )

  real.each([
    ['a folder of a linked worktree', 'pkg'],
    ['a linked worktree', '.'],
  ])(
    '%s, where one command follows the other',
    async (_, name) => {
      using at = home()
      const linked = join(realpathSync(at.dir), 'linked')
      byUser(at, repository(at, 'main'), 'worktree', 'add', '-q', linked)
      const folder = join(linked, name)
      const calls = ['1', '2', '3', '4'].map((nth) =>
        call('shell', { command: `${identity}echo x > ${nth}.txt && git add ${nth}.txt && git commit -qm ${nth} && git status --short` }),
      )
      const { stdout } = await turn(at, [...calls, { text: 'It said: {{last_tool_result}}' }], ['--autonomy', 'full', '-C', folder], {
        cwd: folder,
      })
      expect(stdout).toBe('It said: (no output)\n')
      expect(byUser(at, linked, 'log', '--format=%s')).toBe('4\n3\n2\n1\nthe only commit\n')
      expect(byUser(at, folder, 'ls-files')).toMatch(/^1.txt\n2.txt\n3.txt\n4.txt\n(?:a.txt\npkg\/)?b.txt\n$/)
      expect(byUser(at, linked, 'status', '--porcelain')).toBe('')
    },
    60_000,
  )
})
