/** Shares one small /etc among all tests of a file. */

import { lstatSync, mkdirSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { insideUser } from '../bubblewrap/namespaces.ts'
import type { GitUser } from '../contract.ts'
import { nameOf } from './command-filesystem.ts'
import { commandHome } from './command-home.ts'
import { prepareEtc } from './system-files.ts'

/** Puts a link to it into a new state folder: to make and remove its many links costs more than most commands. */
export function shareEtc(stateHome: string, gitUser: GitUser = {}): void {
  const { uid, gid } = insideUser()
  const user = { uid, gid, name: nameOf(uid), home: commandHome }
  const shared = prepareEtc({ run: join(tmpdir(), 'braidclaw-etc'), user, gitUser })
  if (shared === undefined) return
  const run = join(stateHome, 'run')
  const link = join(run, basename(shared))
  if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) return
  mkdirSync(run, { recursive: true, mode: 0o700 })
  symlinkSync(shared, link)
}
