/**
 * Makes a commit of a result by the plumbing of git, in a repository of our own: without hooks, filters or settings of the workspace. The new
 * objects and the branch become changes of the user's repository, which are judged and applied like those of a command.
 */

import { spawnSync } from 'node:child_process'
import { copyFileSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256 } from '../../../kit/sha256.ts'
import { cut } from '../../../kit/text.ts'
import type { Change } from '../../../runtime/changes.ts'
import { fixedPath } from '../../../sandbox/trial-key.ts'
import { bytesAt, rawName } from '../../../workspace/changes/tree/entry.ts'
import { createIgnoredPaths } from '../../../workspace/git/ignored-paths.ts'
import { readRepositorySettings } from '../../../workspace/git/read-settings.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { gitUser } from '../../transactions/git-around.ts'
import { createOwnRepository } from '../../transactions/run-transfer.ts'
import type { WiggumRecord } from './run-copy.ts'

type Committing = {
  readonly setup: Setup
  readonly record: WiggumRecord
  readonly changes: readonly Change[]
  /** Holds the new files, and gets the new objects and the branch in their place. */
  readonly upper: string
}

/** Returns the changes of the repository that bring the commit; none when git ignores all that changed. @throws FailureError `error` when git fails */
export async function commitChanges({ setup, record, changes, upper }: Committing): Promise<readonly Change[]> {
  const { workspace, branch = '', head = '', prompt } = record
  const { env, home } = setup.context
  const git = join(workspace, '.git')
  using own = createOwnRepository(setup.paths.home, { git, common: git })
  const user = gitUser({ workspace, home: env.HOME ?? home, env })
  const local = (key: string) =>
    readRepositorySettings({ root: workspace, git, common: git }, home).findLast((each) => each.key === key)?.value
  const [name, email] = [local('user.name') ?? user.name ?? 'BraidClaw', local('user.email') ?? user.email ?? 'braidclaw@localhost']
  const identity = Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((role) => [
      [`GIT_${role}_NAME`, name],
      [`GIT_${role}_EMAIL`, email],
    ]),
  )
  const run = (words: readonly string[], input: string | Uint8Array = '') => {
    const options = {
      cwd: own.folder,
      input,
      env: { PATH: fixedPath, HOME: own.folder, GIT_DIR: own.folder, GIT_CONFIG_NOSYSTEM: '1', ...identity },
    }
    const { status, stdout, stderr, error } = spawnSync('git', ['-c', 'core.hooksPath=/dev/null', ...words], options)
    if (status !== 0) throw new FailureError('error', `git ${words[0]} failed: ${error?.message ?? stderr.toString().trim()}`)
    return stdout.toString().trim()
  }
  const ignored = createIgnoredPaths({ workspace, home: env.HOME ?? home, env })
  const files = changes.filter((change) => isOfTree(change) && ignored(change.path, false) === undefined)
  if (files.length === 0) return []
  const zero = '0'.repeat(head.length)
  const paths = files.flatMap((change) => (change.after?.kind === 'file' ? [bytesAt(upper, rawName(change))] : []))
  const odd = paths.find((path) => path.includes('\n'))
  if (odd !== undefined)
    throw new FailureError('error', `--branch: ${JSON.stringify(odd.toString())} has a line break in its name; rename it`)
  const hashed = run(
    ['hash-object', '-w', '--no-filters', '--stdin-paths'],
    Buffer.from(paths.map((path) => `${path.toString('latin1')}\n`).join(''), 'latin1'),
  )
  const ids = hashed.split('\n')
  const entries = files.map(({ after, ...named }) => {
    const link = after?.kind === 'link' ? run(['hash-object', '-w', '--no-filters', '--stdin'], after.target ?? '') : undefined
    const id = link ?? (after?.kind === 'file' ? ids.shift() : zero)
    const mode = link ? '120000' : after?.kind === 'file' ? (after.mode & 0o100 ? '100755' : '100644') : '0'
    return Buffer.from(`${mode} ${id}\t${rawName(named)}\0`, 'latin1')
  })
  run(['read-tree', head])
  run(['update-index', '-z', '--index-info'], Buffer.concat(entries))
  const tree = run(['write-tree'])
  const commit = run(['commit-tree', tree, '-p', head], `${cut(prompt.trim(), 2_000)}\n`)
  run(['update-ref', `refs/heads/${branch}`, commit, zero])
  rmSync(upper, { recursive: true, force: true })
  // Each loose object is a file in a folder of two letters.
  const objects = [...new Bun.Glob('objects/??/*').scanSync({ cwd: own.folder })]
  const made = [...objects, `refs/heads/${branch}`]
  return folded(made.map((path) => `.git/${path}`)).flatMap((path): Change[] => {
    const [from, to] = [join(own.folder, path.slice('.git/'.length)), join(upper, path)]
    const isFolder = lstatSync(from).isDirectory()
    if (lstatSync(join(workspace, path), { throwIfNoEntry: false })) {
      if (isFolder) mkdirSync(to, { recursive: true, mode: 0o755 })
      return []
    }
    if (isFolder) {
      mkdirSync(to, { recursive: true, mode: 0o755 })
      return [{ path, after: { kind: 'folder', mode: 0o755 } }]
    }
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(from, to)
    const content = readFileSync(from)
    return [{ path, after: { kind: 'file', mode: lstatSync(to).mode & 0o7777, size: content.length, sha256: sha256(content) } }]
  })
}

/** Tells whether the change appears in a tree of git, which lists no folders; a folder in the place of a file removes the file. */
function isOfTree({ path, before, after }: Change): boolean {
  const isFolder =
    after === undefined ? before?.kind === 'folder' : after.kind === 'folder' && (before === undefined || before.kind === 'folder')
  return !isFolder && after?.kind !== 'other' && !/(^|\/)\.git(\/|$)/.test(path)
}

/** Adds the folders of these paths, parents first. */
function folded(paths: readonly string[]): readonly string[] {
  const all = paths.flatMap((path) => path.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/')))
  return [...new Set(all)].filter((path) => path !== '.git').sort()
}
