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
