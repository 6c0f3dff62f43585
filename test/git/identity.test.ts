/** Commands know who the user is in git, and see the repository of a linked worktree; neither opens anything else. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap') && needs('git'))

type Home = ReturnType<typeof home>

function git(at: Home, cwd: string, ...words: readonly string[]): string {
  const env = { PATH: '/usr/bin:/bin', HOME: at.home, GIT_CONFIG_NOSYSTEM: '1' }
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...words], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${words.join(' ')}: ${stderr}`)
  return stdout.toString()
}

const last = { text: 'It said: {{last_tool_result}}' }
const run = (at: Home, command: string) => turn(at, [call('shell', { command }), last], ['--autonomy', 'full'])

real(
  "the name in the user's settings is the author of a commit, unless the repository or the environment names another",
  async () => {
    using at = home()
    writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = Ada Example\n\temail = ada@example.org\n[include]\n\tpath = more\n')
    writeFileSync(join(at.home, 'more'), '[user]\n\temail = included@example.org\n')
    git(at, at.workspace, 'init', '-q', '-b', 'main')
    const author = () => git(at, at.workspace, 'log', '-1', '--format=%an <%ae> %cn').trim()
    const { code, stdout } = await run(at, 'git commit -q --allow-empty -m one')
    expect([stdout, code]).toEqual([stdout, 0])
    expect(author()).toBe('Ada Example <included@example.org> Ada Example')
    git(at, at.workspace, 'config', 'user.name', 'Of This Repository')
    await run(at, 'git commit -q --allow-empty -m two')
    expect(author()).toBe('Of This Repository <included@example.org> Of This Repository')
    const commit = [call('shell', { command: 'git commit -q --allow-empty -m three' }), last]
    await turn(at, commit, ['--autonomy', 'full'], { env: { GIT_AUTHOR_NAME: 'From Outside' } })
    expect(author()).toBe('From Outside <included@example.org> Of This Repository')
    git(at, at.workspace, 'init', '-q', 'nested')
    git(at, at.workspace, '-C', 'nested', 'config', 'user.email', 'nested@example.org')
    await run(at, 'cd nested && git commit -q --allow-empty -m four')
    const nested = git(at, join(at.workspace, 'nested'), 'log', '-1', '--format=%an <%ae> %cn <%ce>').trim()
    expect(nested).toBe('Ada Example <nested@example.org> Ada Example <nested@example.org>')
  },
  120_000,
)

real(
  'a linked worktree can be worked in; a .git file that only claims to be one opens nothing',
  async () => {
    using at = home()
    const main = join(at.dir, 'main')
    mkdirSync(main)
    git(at, main, 'init', '-q', '-b', 'main')
    git(at, main, '-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-q', '--allow-empty', '-m', 'the only commit')
    git(at, main, 'worktree', 'add', '-q', '-f', at.workspace)
    writeFileSync(join(at.workspace, 'new.txt'), 'x')
    expect((await run(at, 'git status --short; git log --format=%s')).stdout).toMatch(/\?\? new\.txt[\s\S]*the only commit/)
    await run(at, 'git add new.txt')
    expect(git(at, at.workspace, 'status', '--short')).toBe('A  new.txt\n')

    using other = home()
    const secret = join(other.dir, 'secret')
    mkdirSync(join(secret, 'objects'), { recursive: true })
    mkdirSync(join(secret, 'refs'))
    for (const [name, text] of [
      ['HEAD', 'ref: refs/heads/main\n'],
      ['key', 'private'],
    ] as const)
      writeFileSync(join(secret, name), text)
    writeFileSync(join(other.workspace, '.git'), `gitdir: ${secret}\n`)
    expect((await run(other, `cat ${secret}/key`)).stdout).not.toContain('private')
    expect(existsSync(join(secret, 'key'))).toBe(true)
  },
  120_000,
)

real(
  'git that fails because of what the sandbox does says why: a clone with hard links, a repository around the workspace',
  async () => {
    using at = home()
    git(at, at.workspace, 'init', '-q', '-b', 'main')
    git(at, at.workspace, '-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-q', '--allow-empty', '-m', 'one')
    expect((await run(at, 'git clone -q . copy')).stdout).toContain('for git clone, add --no-hardlinks]')
    expect((await run(at, 'git clone -q --no-hardlinks . copy')).stdout).not.toContain('[')
    expect(git(at, join(at.workspace, 'copy'), 'log', '--format=%s').trim()).toBe('one')
    const inside = join(at.workspace, 'packages/a')
    mkdirSync(inside, { recursive: true })
    const status = [call('shell', { command: 'git status' }), last]
    const { stdout } = await turn(at, status, ['--autonomy', 'full', '-C', inside], { cwd: inside })
    expect(stdout).toContain('[the workspace is a folder of the git repository in ../.., and commands see nothing outside the workspace')
    expect((await turn(at, status, ['--autonomy', 'full', '-C', at.dir], { cwd: at.dir })).stdout).not.toContain('is a folder of')
  },
  120_000,
)

real(
  "a hook folder of the user's own settings does not change",
  async () => {
    using at = home()
    writeFileSync(join(at.home, '.gitconfig'), `[core]\n\thooksPath = ${join(at.workspace, 'my/hooks')}\n`)
    const { code, stdout } = await run(at, 'mkdir -p my/hooks && echo x > my/hooks/pre-commit && echo y > my/other')
    expect(code).toBe(3)
    expect(stdout).toContain('my/hooks/pre-commit')
    expect(existsSync(join(at.workspace, 'my'))).toBe(false)
  },
  120_000,
)

real(
  'hooks of the repository run with the command; those of the settings of the user, which lie outside, are named because they did not',
  async () => {
    using at = home()
    const hooks = join(at.home, 'my-hooks')
    mkdirSync(hooks)
    for (const name of ['pre-commit', 'commit-msg', 'x.sample']) writeFileSync(join(hooks, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = n\n\temail = e\n')
    git(at, at.workspace, 'init', '-q', '-b', 'main')
    writeFileSync(join(at.workspace, '.git/hooks/post-commit'), '#!/bin/sh\necho the hook of the repository >&2\n', { mode: 0o755 })
    const own = await run(at, 'git commit -q --allow-empty -m one')
    expect(own.stdout).toContain('the hook of the repository')
    expect(own.stdout).not.toContain('did not run')
    writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = n\n\temail = e\n[core]\n\thooksPath = ~/my-hooks\n')
    const { stdout } = await run(at, 'git commit -q --allow-empty -m two')
    expect(stdout).toContain(`did not run: commit-msg, pre-commit (core.hooksPath is "${hooks}")`)
    expect((await run(at, 'git status')).stdout).not.toContain('did not run')
  },
  120_000,
)
