/**
 * Names the entries of a tree, and tells what stands at a name, so that it is recognised later: the same file, unchanged, or another one.
 */

import { lstatSync, readlinkSync } from 'node:fs'
import type { EntryState, OutsideGit } from '../../../runtime/changes.ts'
import { type Handle, slot } from '../../descriptor.ts'

/** A path relative to the workspace, or one part of it, with one character per byte (latin1), because a file name need not be UTF-8. */
export type RawName = string

export function rawName({ path, bytes }: { readonly path: string; readonly bytes?: string }): RawName {
  if (bytes !== undefined) return Buffer.from(bytes, 'base64').toString('latin1')
  return isAscii(path) ? path : Buffer.from(path).toString('latin1')
}

/** @returns the fields `path` and `bytes` of a change; the path shows what is not UTF-8 with U+FFFD */
export function namesOf(raw: RawName): { readonly path: string; readonly bytes?: string } {
  const bytes = Buffer.from(raw, 'latin1')
  const path = bytes.toString()
  return rawName({ path }) === raw ? { path } : { path, bytes: bytes.toString('base64') }
}

/** @returns a path for node:fs to a name in a folder that is held open */
export function rawSlot(folder: Handle, name: RawName): string | Buffer {
  const text = slot(folder, name)
  return isAscii(name) ? text : Buffer.from(text, 'latin1')
}

/** @returns the path of an entry below a folder, in bytes */
export function bytesAt(root: string, raw: RawName): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(raw, 'latin1')])
}

function isAscii(name: RawName): boolean {
  for (let at = 0; at < name.length; at++) if (name.charCodeAt(at) > 127) return false
  return true
}

/** @returns "" for a name in the workspace itself */
export function folderOf(raw: RawName): RawName {
  const at = raw.lastIndexOf('/')
  return at < 0 ? '' : raw.slice(0, at)
}

export function lastOf(raw: RawName): RawName {
  return raw.slice(raw.lastIndexOf('/') + 1)
}

/** @returns true when a path names something in the workspace, or in its git directory outside, and nothing else */
export function isInside(raw: RawName, outside?: OutsideGit): boolean {
  const git = outside && `${Buffer.from(outside.common).toString('latin1')}/`
  if (git !== undefined && raw.startsWith(git)) return isInside(raw.slice(git.length))
  return raw.length > 0 && !raw.includes('\0') && raw.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}

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

/** All attributes of an entry that a step uses. `device` is written as in /proc/locks. */
export type EntryStat = Identity & { readonly uid: number; readonly gid: number; readonly device: string; readonly links: number }

/** @returns undefined when nothing has that name @throws the system's error */
export function lstat(folder: Handle, name: RawName): EntryStat | undefined {
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

/** Returns the attributes that a plan keeps. */
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

/** True only when its mode and owner did not change either; another link to the same file changes that time, too. */
export function isUntouched(known: Identity, now: EntryStat): boolean {
  return isSame(known, now) && known.mode === now.mode && (known.changed === now.changed || now.links > 1)
}

export function linkBytes(folder: Handle, name: RawName): Buffer {
  return readlinkSync(rawSlot(folder, name), { encoding: 'buffer' })
}
