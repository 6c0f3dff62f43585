/** Creates the folder of one transaction: the layers of its overlay and the mark of its beginning. */

import { chmodSync, copyFileSync, linkSync, mkdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import type { SpawnPlan } from '../contract.ts'
import { ownerName } from '../private-folder.ts'
import { removeTree } from './layer-files.ts'

/**
 * `up` receives what the command writes, `work` belongs to the kernel, `mnt` is the mount point, and `lower` and `cache` are links to the
 * layers below. `up.git` and so on are the same for a git directory outside the workspace, which the file `outside` names. The name tells its
 * owner, as in private-folder.ts.
 */
export type Transaction = {
  readonly id: string
  readonly folder: string
  /** Records the beginning: whoever changes a file of the workspace from now on changes it while the command runs. */
  begin(): void
  drop(): void
}

export type Layers = { readonly workspace: string; readonly cache: string; readonly outside?: SpawnPlan['outside'] }

/** `base` is a private folder on the file system that holds the upper layer. */
export function createTransaction(base: string, { workspace, cache, outside }: Layers): Transaction {
  const id = `tx-${ownerName()}-${crypto.randomUUID().slice(0, 13)}`
  const folder = join(base, id)
  mkdirSync(folder, { mode: 0o700 })
  const at = (name: string) => join(folder, name)
  for (const name of ['up', 'work', 'mnt']) mkdirSync(at(name), { mode: 0o700 })
  const { mode, dev, ino } = statSync(workspace, { bigint: true })
  // The root of the view has the mode of the upper layer.
  chmodSync(at('up'), Number(mode & 0o777n))
  symlinkSync(workspace, at('lower'))
  symlinkSync(cache, at('cache'))
  // The mark of the beginning names the device and inode of the workspace, so that the changes enter no other folder of that name.
  writeFileSync(at('start'), `${dev}:${ino}`, { mode: 0o600 })
  if (outside !== undefined) layOutside(folder, outside)
  return {
    id,
    folder,
    begin() {
      keepIndex(outside?.git ?? join(workspace, '.git'), at('index'))
      const now = new Date()
      utimesSync(at('start'), now, now)
    },
    drop: () => removeTree(folder),
  }
}

/**
 * Links the git index of the beginning: git replaces it only to refresh the times of files in it, and only the old one tells that no entry
 * changed. Without git, or on another file system, there is none.
 */
function keepIndex(git: string, path: string): void {
  // Without the link, a changed index counts as changed.
  attempt(() => {
    rmSync(path, { force: true })
    linkSync(join(git, 'index'), path)
  })
}

/** The folders above the index that the command sees get the modes of those below, so that nothing but the index is different. */
function layOutside(folder: string, { root, git, common, index }: NonNullable<Layers['outside']>): void {
  const at = (name: string) => join(folder, name)
  for (const name of ['up.git', 'work.git', 'mnt.git']) mkdirSync(at(name), { mode: 0o700 })
  const { mode, dev, ino } = statSync(common, { bigint: true })
  chmodSync(at('up.git'), Number(mode & 0o777n))
  symlinkSync(common, at('lower.git'))
  writeFileSync(at('outside'), JSON.stringify({ root, git, common, place: `${dev}:${ino}` }), { mode: 0o600 })
  if (index === undefined) return
  const place = join(at('up.git'), relative(common, join(git, 'index')))
  mkdirSync(dirname(place), { recursive: true })
  for (let above = git; above !== common; above = dirname(above))
    chmodSync(join(at('up.git'), relative(common, above)), statSync(above).mode & 0o777)
  // A later time would tell git that files which changed since are clean.
  const { mode: bits, mtimeMs } = statSync(join(git, 'index'))
  for (const copy of [place, at('index.git')]) copyFileSync(index, copy)
  chmodSync(place, bits & 0o777)
  utimesSync(place, mtimeMs / 1000, Math.floor(mtimeMs) / 1000)
}
