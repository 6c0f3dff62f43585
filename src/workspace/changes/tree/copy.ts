/** Copies one file or link to another file system, with mode, owner and times; a reader never sees half of it. */

import { chmodSync, lchownSync, promises, symlinkSync, unlinkSync } from 'node:fs'
import { codeOf } from '../../descriptor.ts'
import { type Found, linkBytes, look } from './identity.ts'
import type { Libc, Place } from './libc.ts'
import { type RawName, rawSlot } from './names.ts'

/** `temporary` is the name that the copy has in its folder until it is complete; without it nobody looks at the copy before that. */
type Copying = { readonly from: Place; readonly to: Place; readonly temporary?: RawName }

/** Replaces what is at the new place. @throws the system's error */
export async function copyEntry(libc: Libc, { from, to, temporary }: Copying): Promise<void> {
  const made = { folder: to.folder, name: temporary ?? to.name }
  const state = look(from.folder, from.name)
  if (state?.kind !== 'file' && state?.kind !== 'link') throw new Error('only files and links can be kept on another file system')
  deleteEntry(made)
  if (state.kind === 'link') symlinkSync(linkBytes(from.folder, from.name), rawSlot(made.folder, made.name))
  else await promises.copyFile(rawSlot(from.folder, from.name), rawSlot(made.folder, made.name))
  likeOriginal(libc, made, state)
  if (temporary !== undefined) libc.rename(made, to, 'replace')
}

function likeOriginal(libc: Libc, made: Place, { kind, uid, gid, mode, modified }: Found): void {
  const path = rawSlot(made.folder, made.name)
  const now = look(made.folder, made.name)
  if (now !== undefined && (now.uid !== uid || now.gid !== gid)) keepOwner(path, uid, gid)
  if (kind === 'file') chmodSync(path, mode)
  const time = BigInt(modified)
  const seconds = time / 1_000_000_000n - (time % 1_000_000_000n < 0n ? 1n : 0n)
  libc.setModified(made, { seconds, nanoseconds: time - seconds * 1_000_000_000n })
}

/** Only root can give a file away. */
function keepOwner(path: string | Buffer, uid: number, gid: number): void {
  try {
    lchownSync(path, uid, gid)
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error
  }
}

/** Does nothing when nothing is there. @throws the system's error */
export function deleteEntry({ folder, name }: Place): void {
  try {
    unlinkSync(rawSlot(folder, name))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
