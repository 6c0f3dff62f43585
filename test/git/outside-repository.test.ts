/** Git can be read in a workspace whose repository lies outside it; a file that only claims a repository opens nothing. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap') && needs('git'))

function git(at: Nest, cwd: string, ...words: readonly string[]): string {
  const env = { PATH: '/usr/bin:/bin', HOME: at.home, GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'file' }
  const own = ['-c', 'user.name=n', '-c', 'user.email=e', '-c', 'init.defaultBranch=hidden']
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...own, ...words], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${words.join(' ')}: ${stderr}`)
  return stdout.toString()
}
const run = async (at: Nest, command: string, folder = at.workspace) =>
  (
    await turn(at, [call('shell', { command }), { text: 'It said: {{last_tool_result}}' }], ['--autonomy', 'full', '-C', folder], {
      cwd: folder,
    })
  ).stdout
/** Makes a repository with one commit of `a.txt` and `pkg/b.txt` in a folder beside the workspace. */
function repository(at: Nest, name: string, ...how: readonly string[]): string {
  const root = join(realpathSync(at.dir), name)
  mkdirSync(join(root, 'pkg'), { recursive: true })
  git(at, root, 'init', '-q', ...how)
  writeFileSync(join(root, 'a.txt'), 'private a\n')
  writeFileSync(join(root, 'pkg/b.txt'), 'b\n')
  git(at, root, 'add', '.')
  git(at, root, 'commit', '-q', '-m', 'the only commit')
  return root
}
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
      git(at, at.workspace, 'init', '-q')
      mkdirSync(join(at.workspace, '.git/objects/info'), { recursive: true })
      writeFileSync(join(at.workspace, '.git/objects/info/alternates'), `${other}/.git/objects\n`)
      const id = git(at, other, 'rev-parse', 'HEAD').trim()
      expect(await run(at, `git cat-file -p ${id}; ls ${other}/.git/objects`)).not.toContain('the only commit')
    },
    60_000,
  )
})

describe('what can be looked at', () => {
  const seen = async (at: Nest, folder: string, file: string) => {
    writeFileSync(join(folder, file), 'changed\n')
    const out = await run(at, look, folder)
    expect(out).toContain('the only commit')
    expect(out).toContain(` M ${file}`)
    expect(out).toContain('+changed')
    expect(out).not.toContain(' D ')
    return run(at, `git add ${file} && git commit -qm two`, folder)
  }

  real(
    'a linked worktree of a repository, and of a bare one',
    async () => {
      using at = home()
      const main = repository(at, 'main')
      git(at, main, 'worktree', 'add', '-q', join(at.dir, 'linked'))
      expect(await seen(at, join(at.dir, 'linked'), 'a.txt')).toContain('outside it, in')
      git(at, at.dir, 'clone', '-q', '--bare', main, join(at.dir, 'bare.git'))
      git(at, join(at.dir, 'bare.git'), 'worktree', 'add', '-q', join(at.dir, 'of-bare'))
      expect(await seen(at, join(at.dir, 'of-bare'), 'pkg/b.txt')).toContain('the user adds and commits')
    },
    120_000,
  )

  real(
    'a separate git directory, a submodule, and a worktree that was moved with its files',
    async () => {
      using at = home()
      const separate = repository(at, 'separate', '--separate-git-dir', join(at.dir, 'elsewhere.git'))
      expect(await seen(at, separate, 'a.txt')).toContain('outside it, in')
      const upper = repository(at, 'upper')
      git(at, upper, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', repository(at, 'lower'), 'sub')
      expect(await seen(at, join(upper, 'sub'), 'a.txt')).toContain('outside it, in')
      renameSync(separate, join(at.dir, 'moved'))
      expect(await run(at, look, join(at.dir, 'moved'))).toContain('the only commit')
    },
    120_000,
  )

  real(
    'a folder of a repository, without the files beside it, which do not seem to be deleted',
    async () => {
      using at = home()
      const main = repository(at, 'main')
      expect(await seen(at, join(main, 'pkg'), 'b.txt')).toContain('outside it, in')
      expect(await run(at, 'cat ../a.txt; ls -A ..', join(main, 'pkg'))).not.toContain('private a')
      writeFileSync(join(main, 'a.txt'), 'committed meanwhile\n')
      git(at, main, 'commit', '-qam', 'another')
      const out = await run(at, `${look}; git diff --cached --stat`, join(main, 'pkg'))
      expect(out).toContain('another\nthe only commit')
      expect(out).not.toContain('a.txt')
      git(at, main, 'worktree', 'add', '-q', join(at.dir, 'linked'), 'HEAD~1')
      await seen(at, join(at.dir, 'linked/pkg'), 'b.txt')
      expect(readFileSync(join(main, '.git/HEAD'), 'utf8')).toStartWith('ref: ')
    },
    120_000,
  )

  real(
    'a shared clone in a folder that a person trusts',
    async () => {
      using at = home()
      const clone = join(at.dir, 'clone')
      git(at, at.dir, 'clone', '-q', '--shared', repository(at, 'main'), clone)
      expect(await run(at, 'git log', clone)).toContain('braidclaw trust')
      await at.run(['trust', clone])
      writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = n\n\temail = e\n')
      expect(await seen(at, clone, 'a.txt')).toContain('It said: (no output)')
      expect(git(at, clone, 'log', '-1', '--format=%s')).toBe('two\n')
    },
    120_000,
  )
})
