/** Tells what stands at a name, so that it is known again later: the same file, unchanged, or another one. */

import { lstatSync, readlinkSync } from 'node:fs'
import type { EntryState } from '../../../runtime/changes.ts'
import type { Handle } from '../../descriptor.ts'
import { type RawName, rawSlot } from './names.ts'

/** Times in nanoseconds since 1970, as decimal text. */
export type Identity = {
  readonly kind: EntryState['kind']
  readonly inode: string
  readonly size: number
  /** Permission bits with set-user-ID, set-group-ID and sticky. */
  readonly mode: number
  readonly modified: string
  readonly changed: string
}

/** What else a step needs to know of a name. `device` is written as in /proc/locks. */
export type Found = Identity & { readonly uid: number; readonly gid: number; readonly device: string; readonly links: number }

/** @returns undefined when nothing has that name @throws the system's error */
export function look(folder: Handle, name: RawName): Found | undefined {
  const stat = lstatSync(rawSlot(folder, name), { bigint: true, throwIfNoEntry: false })
  if (stat === undefined) return undefined
  const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other'
  return {
    kind,
    inode: String(stat.ino),
    size: Number(stat.size),
    mode: Number(stat.mode & 0o7777n),
    modified: String(stat.mtimeNs),
    changed: String(stat.ctimeNs),
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    device: deviceText(
      Number(((stat.dev >> 8n) & 0xfffn) | ((stat.dev >> 32n) & ~0xfffn)),
      Number((stat.dev & 0xffn) | ((stat.dev >> 12n) & 0xffffff00n)),
    ),
    links: Number(stat.nlink),
  }
}

/** The kernel prints the numbers of a device in hex with two digits at least. */
export function deviceText(major: number, minor: number): string {
  return `${major.toString(16).padStart(2, '0')}:${minor.toString(16).padStart(2, '0')}`
}

/** Only what a plan keeps. */
export function identityOf({ kind, inode, size, mode, modified, changed }: Identity): Identity {
  return { kind, inode, size, mode, modified, changed }
}

/**
 * True for the same content as far as the file system tells. `copied`: one of both may be a copy on another file system, which has another
 * inode, but the same times and mode.
 */
export function isSame(known: Identity, now: Identity, { copied = false } = {}): boolean {
  if (known.kind !== now.kind) return false
  if (!copied && known.inode !== now.inode) return false
  if (copied && known.kind === 'file' && (known.mode & 0o777) !== (now.mode & 0o777)) return false
  return known.kind === 'folder' || (known.size === now.size && known.modified === now.modified)
}

/** Also true only when nobody changed its mode or owner; another link to the same file changes that time too. */
export function isUntouched(known: Identity, now: Found): boolean {
  return isSame(known, now) && known.mode === now.mode && (known.changed === now.changed || now.links > 1)
}

export function linkBytes(folder: Handle, name: RawName): Buffer {
  return readlinkSync(rawSlot(folder, name), { encoding: 'buffer' })
}
