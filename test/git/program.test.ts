/** Git commands through the whole program: what is applied, asked and refused, and what receipts say of it. */

import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap') && needs('git'))

const shell = (command: string) => [call('shell', { command }), { text: 'It said: {{last_tool_result}}' }]
const receipts = async (at: ReturnType<typeof home>) => JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)

real(
  'a hook written by a script is refused in full, with all else that the script wrote, and does not run later',
  async () => {
    using at = home()
    const git = (...words: readonly string[]) =>
      Bun.spawnSync(['git', '-c', 'user.name=n', '-c', 'user.email=e', ...words], { cwd: at.workspace })
    git('init', '-q')
    const canary = join(at.dir, 'ran')
    at.file(
      'install.sh',
      `echo done > fine.txt; printf '#!/bin/sh\\ntouch ${canary}\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit`,
    )
    const { code, stdout } = await turn(at, shell('sh install.sh'), ['--autonomy', 'full'])
    expect([code, stdout]).toEqual([3, expect.stringContaining('.git/hooks/post-commit')])
    expect(await receipts(at)).toMatchObject([{ status: 'denied', changes: 'dropped' }])
    git('commit', '-q', '--allow-empty', '-m', 'one')
    expect([existsSync(canary), existsSync(join(at.workspace, 'fine.txt'))]).toEqual([false, false])
  },
  120_000,
)

real(
  'with --auto a commit is applied without a question; a new repository and a new remote wait for a person',
  async () => {
    using at = home()
    writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = n\n\temail = e@example.org\n')
    const auto = (command: string) => turn(at, shell(command), ['--approve-all-medium'], { through: alone })
    expect(await auto('git init -q -b main')).toMatchObject({ code: 4 })
    expect(existsSync(join(at.workspace, '.git'))).toBe(false)
    expect((await receipts(at)).at(-1)).toMatchObject({ changes: 'pending' })
    Bun.spawnSync(['git', 'init', '-q', '-b', 'main'], { cwd: at.workspace })
    expect(await auto('echo x > a.md && git add a.md && git commit -qm one')).toMatchObject({ code: 0 })
    expect(Bun.spawnSync(['git', 'log', '--format=%s'], { cwd: at.workspace }).stdout.toString()).toBe('one\n')
    expect(await auto('git remote add origin https://example.org/x.git')).toMatchObject({ code: 4 })
    expect(await auto('git config core.fsmonitor ./x')).toMatchObject({ code: 3 })
  },
  120_000,
)

real(
  'files inside the objects of git are refused; a commit is shown as a commit everywhere, and its text cannot draw over the question',
  async () => {
    using at = home()
    writeFileSync(join(at.home, '.gitconfig'), '[user]\n\tname = n\n\temail = e@example.org\n')
    const git = (...words: readonly string[]) =>
      Bun.spawnSync(['git', '-c', 'user.name=n', '-c', 'user.email=e', ...words], { cwd: at.workspace }).stdout.toString()
    git('init', '-q', '-b', 'main')
    at.file('a.txt', '1\n')
    git('add', 'a.txt')
    git('commit', '-qm', 'one')
    const before = git('rev-parse', 'HEAD')
    const attack =
      'b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100755,$b,.envrc --cacheinfo 100644,$b,.github/workflows/deploy.yml; git commit -qm fix; git update-index --skip-worktree .envrc'
    for (const level of [['--approve-all-medium'], ['--autonomy', 'full']]) {
      const { code, stdout } = await turn(at, shell(attack), level, { through: alone })
      expect([code, stdout]).toEqual([3, expect.stringContaining('.envrc')])
      expect(git('rev-parse', 'HEAD')).toBe(before)
    }
    const honest = 'echo 2 > a.txt; git commit -qam "$(printf \'fix: \\033[2Jthe sum\')"; echo x > c.txt'
    expect(await turn(at, shell(honest), [], { through: alone })).toMatchObject({ code: 4 })
    const short = /commit [\da-f]{7} on main: /
    const listed = (await at.run(['approvals', 'list', '--json'])).stdout
    const [{ id, summary }] = JSON.parse(listed)
    expect(summary).toMatch(/^commit [\da-f]{7} on main: ".*the sum" by "n", 1 file; 2 files: 1 changed, 1 new: a\.txt, c\.txt$/)
    const seen = [
      (await at.run(['approvals', 'show', id])).stdout,
      JSON.parse((await at.run(['approvals', 'show', id, '--json'])).stdout).patch,
      (await at.run(['changes', 'show', '--patch'])).stdout,
      (await at.run(['approvals', 'allow', id])).stdout,
      (await at.run(['changes', 'show', '--patch'])).stdout,
      (await at.run(['undo', '--dry-run'])).stdout,
    ]
    for (const text of seen) {
      expect(text).toMatch(short)
      expect(text).not.toContain('\u001b')
      expect(text).not.toContain('.git/')
    }
    // What no other change of the set shows is in the patch as comments: nobody says yes to what was not shown.
    const hidden =
      'c=$(git commit-tree -p HEAD -m hidden $(printf "100644 blob $(echo unseen | git hash-object -w --stdin)\\tb\\n" | git mktree)) && git branch b $c'
    expect(await turn(at, shell(hidden), [], { through: alone })).toMatchObject({ code: 4 })
    expect((await at.run(['changes', 'show', '--patch'])).stdout).toMatch(/^# commit .*hidden[\s\S]*^# \+unseen$/m)
    expect(await turn(at, shell('echo 3 > a.txt && git commit -qam three'), ['--approve-all-medium'], { through: alone })).toMatchObject({
      code: 0,
    })
    expect(git('log', '-1', '--format=%s')).toBe('three\n')
  },
  120_000,
)
