/**
 * Makes the empty repository in which git works outside the sandbox. It borrows the objects of the user's repository and knows its
 * references; settings, hooks and work tree stay behind.
 */

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownerName } from '../../../sandbox/owner/private-folder.ts'
import type { Transfer } from '../../../security/command/transfer/transfer.ts'
import { readHead, readRefs } from '../../../workspace/git/read-refs.ts'
import { readSmall } from '../../../workspace/git/read-settings.ts'

/** What is different afterwards: full name, old id, new id; one of the two is empty for a new and for a deleted reference. */
export type MovedRef = { readonly name: string; readonly from: string; readonly to: string }

export type OwnRepository = Disposable & {
  readonly folder: string
  moved(): readonly MovedRef[]
  /** Whether the list of commits without parents is another one. */
  isDeeper(): boolean
}

/** The name says whose it is: a folder that a killed process leaves is removed at the next start. @throws errors of the file system */
export function createOwnRepository(stateHome: string, { repository: { git, common } }: Transfer): OwnRepository {
  const run = join(stateHome, 'run')
  mkdirSync(run, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(run, `sandbox-${ownerName()}-git-`))
  const before = readRefs(common)
  for (const name of ['objects/info', 'objects/pack', 'refs']) mkdirSync(join(folder, name), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const { branch, id } = readHead(git, before)
  const isLong = [...before.values()].some((each) => each.length === 64)
  write('HEAD', branch === undefined ? `${id ?? 'ref: refs/heads/none'}\n` : `ref: refs/heads/${branch}\n`)
  write('config', `[core]\nrepositoryformatversion = 1\nbare = true\n${isLong ? '[extensions]\nobjectformat = sha256\n' : ''}`)
  write('objects/info/alternates', `${join(common, 'objects')}\n`)
  write('packed-refs', [...before].map(([name, each]) => `${each} ${name}\n`).join(''))
  const shallow = join(common, 'shallow')
  if (existsSync(shallow)) copyFileSync(shallow, join(folder, 'shallow'))
  return {
    folder,
    moved: () => difference(before, readRefs(folder)),
    isDeeper: () => readSmall(shallow) !== readSmall(join(folder, 'shallow')),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A transfer moves nothing but what it tracks of a server. */
function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly MovedRef[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((name) => /^refs\/(?:remotes|tags)\//.test(name) && before.get(name) !== after.get(name))
    .map((name) => ({ name, from: before.get(name) ?? '', to: after.get(name) ?? '' }))
}
