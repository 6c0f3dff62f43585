/** Writes a complete new file beside the old one, flushes it, then renames it over the old one. */

import { fchmodSync, fchownSync, fstatSync, fsyncSync, lstatSync, renameSync, type Stats, unlinkSync, writeSync } from 'node:fs'
import { hasCode } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { By, FileRefusal, Originals, RefuseUnseen, WriteResult } from '../contract.ts'
import { explain, flags, type Handle, hold, slot } from '../descriptor.ts'
import { type Locator, quote } from '../locate-path.ts'
import { contentOf } from '../read-file.ts'
import { temporaryName } from '../sweep.ts'
import { place, type WritePlace } from './place.ts'

/** The keeper of the original, the call that writes, and what refuses to replace a file that the caller does not know as it is. */
export type KeepOptions = { readonly originals?: Originals; readonly by?: By; readonly unseen?: RefuseUnseen }

export function writeText(locator: Locator, given: string, text: string, keeping: KeepOptions = {}): WriteResult | FileRefusal {
  const bytes = encode(given, text)
  if (!(bytes instanceof Uint8Array)) return bytes
  const spot = place(locator, given)
  if (!spot.ok) return spot
  using _ = spot.folder
  const path = locator.show(spot.real)
  const { previous } = spot
  const failure =
    (previous && keeping.unseen?.([{ path, read: () => contentOf(locator, spot.real) }], bytes)) ??
    replace({ spot, given, bytes, basis: previous, keeping })
  return failure ?? { ok: true, path, bytes: bytes.length, created: previous === undefined, seen: [{ path, sha256: sha256(bytes) }] }
}

export function encode(given: string, text: string): Uint8Array | FileRefusal {
  if (text.isWellFormed()) return new TextEncoder().encode(text)
  return { ok: false, message: `${quote(given)} was not written: the text has half a surrogate pair, which UTF-8 cannot hold` }
}

type Replacement = {
  readonly spot: WritePlace
  readonly given: string
  readonly bytes: Uint8Array
  /** The file that the new text was made from: if the current file differs from it, nothing is replaced. */
  readonly basis?: Stats
  readonly keeping: KeepOptions
}

/** @returns undefined on success. On any failure before the rename the old file is unchanged and the temporary file is removed. */
export function replace({ spot, given, bytes, basis, keeping }: Replacement): FileRefusal | undefined {
  const temporary = temporaryName()
  try {
    fill(spot, temporary, bytes)
    if (basis !== undefined && !unchanged(spot, basis)) return changed(spot.folder, temporary, given)
    put(spot, temporary, keeping.originals?.keep(coming(spot, temporary, { bytes, by: keeping.by })))
  } catch (error) {
    remove(spot.folder, temporary)
    return { ok: false, message: `${quote(given)} was not written, what was there is unchanged: ${explain(error)}` }
  }
  return syncFolder(spot.folder, given)
}

function coming(
  { folder, name, real, previous, madeFolders }: WritePlace,
  temporary: string,
  { bytes, by }: { bytes: Uint8Array; by?: By },
) {
  return { real, folder, name, temporary, replaces: previous !== undefined, sha256: sha256(bytes), madeFolders, by }
}

function put({ folder, name }: WritePlace, temporary: string, backup: { forget(): void } | undefined): void {
  try {
    renameSync(slot(folder, temporary), slot(folder, name))
  } catch (error) {
    backup?.forget()
    throw error
  }
}

function fill({ folder, previous }: WritePlace, temporary: string, bytes: Uint8Array): void {
  using file = hold(slot(folder, temporary), flags.create, previous === undefined ? 0o666 : 0o600)
  if (previous !== undefined) likeBefore(file, previous)
  writeAll(file, bytes)
  fsyncSync(file.fd)
}

function likeBefore(file: Handle, previous: Stats): void {
  const now = fstatSync(file.fd)
  if (now.uid !== previous.uid || now.gid !== previous.gid) keepOwner(file, previous)
  fchmodSync(file.fd, previous.mode & 0o777)
}

/**
 * Keeps owner and mode of a file of another owner in a writable folder; only root can keep the owner. The mode is set last, so that
 * permissions never widen.
 */
function keepOwner(file: Handle, previous: Stats): void {
  try {
    fchownSync(file.fd, previous.uid, previous.gid)
  } catch (error) {
    if (!hasCode(error, 'EPERM')) throw error
  }
}

/** A full disk makes a write short without an error; only the next write fails. */
function writeAll(file: Handle, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    const count = writeSync(file.fd, bytes, at, bytes.length - at)
    if (count === 0) throw new Error(`only ${at} of ${bytes.length} bytes could be written`)
    at += count
  }
}

function unchanged({ folder, name }: WritePlace, basis: Stats): boolean {
  const now = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  return (
    now !== undefined && now.ino === basis.ino && now.size === basis.size && now.mtimeMs === basis.mtimeMs && now.ctimeMs === basis.ctimeMs
  )
}

function changed(folder: Handle, temporary: string, given: string): FileRefusal {
  remove(folder, temporary)
  return { ok: false, message: `${quote(given)} was changed by someone else meanwhile; read it again and repeat the call` }
}

function remove(folder: Handle, temporary: string): void {
  try {
    unlinkSync(slot(folder, temporary))
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

function syncFolder(folder: Handle, given: string): FileRefusal | undefined {
  try {
    using open = hold(slot(folder, '.'), flags.syncFolder)
    fsyncSync(open.fd)
  } catch (error) {
    // A folder that we may write but not read cannot be flushed; the file itself was flushed.
    if (hasCode(error, 'EACCES')) return undefined
    return { ok: false, message: `${quote(given)} was written but may not survive a power cut: ${explain(error)}` }
  }
}
