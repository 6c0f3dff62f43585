/**
 * Calls of the file tools beside a process that puts git directories, links and folders in each other's place as fast as it can. Run more
 * with FUZZ_FILE_CALLS=100000; FUZZ_SEED chooses other calls.
 */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { judgePath } from '../../security/targets/path.ts'
import { openWorkspace } from '../workspace.ts'

const { FUZZ_FILE_CALLS = 600, FUZZ_SEED = 1 } = process.env
const calls = Number(FUZZ_FILE_CALLS)

const parts = ['HEAD', 'config', 'objects/k', 'refs/heads/main', 'hooks/post-commit']
const plain = 'made by the adversary\n'

/** Renames one of the prepared folders, or makes a link to another one or to the outside, in the place of `d`, until it is killed. */
const adversary = `
  import { renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
  const [root, outside] = process.argv.slice(-2)
  process.chdir(root)
  console.log('ready')
  for (let round = 0; ; round++) {
    const name = 'aside/' + ['git', 'folder', 'tree'][round % 3]
    try { renameSync(name, 'd'); renameSync('d', name) } catch { rmSync('d', { recursive: true, force: true }) }
    try { symlinkSync(round % 2 ? 'linked' : outside, 'd'); unlinkSync('d') } catch { rmSync('d', { recursive: true, force: true }) }
  }`

function plant(folder: string, names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), plain)
  }
}

/** Everything below a folder, with its content. */
function contents(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [join(parentPath, name).slice(folder.length), readFileSync(join(parentPath, name), 'utf8')] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}

test(`of ${calls} calls none writes into a git directory, or outside, whatever takes the place of its folder meanwhile`, async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-adversary-')))
  const [root, outside] = [join(base, 'workspace'), join(base, 'outside')]
  for (const folder of [root, outside, join(root, 'aside/folder')]) mkdirSync(folder, { recursive: true })
  plant(outside, ['config', 'secret'])
  for (const git of ['linked', 'aside/git']) plant(join(root, git), parts)
  plant(
    join(root, 'aside/tree'),
    parts.map((name) => `.git/${name}`),
  )
  const policy = { workspace: root, workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home: base }
  const files = openWorkspace({ root, check: (path, access) => judgePath({ path, access, cwd: root, policy }) })
  const picture = () => [outside, ...['linked', 'aside/git', 'aside/tree/.git'].map((git) => join(root, git))].map(contents)
  const before = picture()
  const child = Bun.spawn([process.execPath, '-e', adversary, root, outside], { stdout: 'pipe' })
  const seen = { written: 0, refused: 0, read: 0 }
  try {
    await child.stdout.getReader().read()
    let state = Number(FUZZ_SEED)
    const roll = (end: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return (state >>> 8) % end
    }
    // More names: the start of a repository of its own, and what git would read in a work tree's link.
    const names = [...parts, 'new.txt', 'commondir', 'deep/er/f', '.git', '.git/config', '.git/hooks/pre-commit', 'config.worktree']
    for (let call = 0; call < calls; call++) {
      const path = `d/${names[roll(names.length)] ?? 'new.txt'}`
      if (roll(4) === 0) {
        const answer = files.readText(path, { maxBytes: 100 })
        if (answer.ok) seen.read += 1
      } else if (roll(6) === 0) files.editText(path, { find: 'made', put: 'EVIL' })
      else seen[files.writeText(path, 'EVIL').ok ? 'written' : 'refused'] += 1
    }
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
  // It was ended in the middle of its work.
  for (const name of ['git', 'folder', 'tree'])
    if (!existsSync(join(root, 'aside', name))) renameSync(join(root, 'd'), join(root, 'aside', name))
  expect(picture()).toEqual(before)
  for (const [, count] of Object.entries(seen)) expect(count).toBeGreaterThan(0)
  rmSync(base, { recursive: true })
}, 3_600_000)
