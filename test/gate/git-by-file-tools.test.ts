/** What file tools write never makes the operator's own git run a program. */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { call, home, turn } from '../support/turns.ts'

test.each(['', 'lib/'])(
  'a repository made by five writes in "%s" is refused at the one that completes it, and "git status" runs nothing',
  async (folder) => {
    using at = home()
    const env = { PATH: '/usr/bin:/bin', HOME: at.home, GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: at.home }
    const git = (...words: readonly string[]) => Bun.spawnSync(['git', ...words], { cwd: join(at.workspace, folder), env })
    Bun.spawnSync(['git', 'init', '-q', at.workspace], { env })
    const canary = join(at.dir, 'ran')
    const config = `[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch '${canary}'; cat #"\n`
    const writes = [
      ['.git/HEAD', 'x'],
      [`${folder}HEAD`, 'ref: refs/heads/main\n'],
      [`${folder}config`, config],
      [`${folder}objects/k`, ''],
      [`${folder}refs/k`, ''],
    ]
    const codes: (number | null)[] = []
    for (const [path = '', content = ''] of writes)
      codes.push((await turn(at, [call('file_write', { path, content }), { text: 'done' }], ['--autonomy', 'full'])).code)
    expect(codes).toEqual([3, 0, 0, 0, 3])
    const told: { [name: string]: string }[] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
    expect(told.map(({ status }) => status)).toEqual(['denied', 'allowed', 'allowed', 'allowed', 'denied'])
    expect(told.at(-1)?.error).toContain('would make the folder')
    expect(git('status').exitCode).toBe(0)
    expect(existsSync(canary)).toBe(false)
  },
)
