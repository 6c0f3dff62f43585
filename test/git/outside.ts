/** Makes repositories beside the workspace, and runs git as the user does. */

import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'

export const identity = 'export GIT_AUTHOR_NAME=N GIT_AUTHOR_EMAIL=e@x GIT_COMMITTER_NAME=N GIT_COMMITTER_EMAIL=e@x; '

export function byUser(at: Nest, cwd: string, ...words: readonly string[]): string {
  const env = { PATH: '/usr/bin:/bin', HOME: at.home, GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'file' }
  const own = ['-c', 'user.name=n', '-c', 'user.email=e', '-c', 'init.defaultBranch=hidden']
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...own, ...words], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${words.join(' ')}: ${stderr}`)
  return stdout.toString()
}

/** Makes a repository with one commit of `a.txt` and `pkg/b.txt` in a folder beside the workspace. */
export function repository(at: Nest, name: string, ...how: readonly string[]): string {
  const root = join(realpathSync(at.dir), name)
  mkdirSync(join(root, 'pkg'), { recursive: true })
  byUser(at, root, 'init', '-q', ...how)
  writeFileSync(join(root, 'a.txt'), 'private a\n')
  writeFileSync(join(root, 'pkg/b.txt'), 'b\n')
  byUser(at, root, 'add', '.')
  byUser(at, root, 'commit', '-q', '-m', 'the only commit')
  return root
}
