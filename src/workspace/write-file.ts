/** Writing: a complete new file beside the old one, flushed, then renamed over it. */

import { fchmodSync, fchownSync, fstatSync, fsyncSync, lstatSync, renameSync, type Stats, unlinkSync, writeSync } from 'node:fs'
import type { Refusal, Written } from './contract.ts'
import { codeOf, explain, flags, type Handle, hold, slot } from './descriptor.ts'
import { type Locator, quote } from './locate-path.ts'
import { type Place, place } from './place.ts'
import { temporaryName } from './sweep.ts'

export function writeText(locator: Locator, given: string, text: string): Written | Refusal {
  const bytes = encode(given, text)
  if (!(bytes instanceof Uint8Array)) return bytes
  const spot = place(locator, given)
  if (!spot.ok) return spot
  using _ = spot.folder
  const failure = replace({ spot, given, bytes })
  if (failure !== undefined) return failure
  return { ok: true, path: locator.show(spot.real), bytes: bytes.length, created: spot.previous === undefined }
}

export function encode(given: string, text: string): Uint8Array | Refusal {
  if (text.isWellFormed()) return new TextEncoder().encode(text)
  return { ok: false, message: `${quote(given)} was not written: the text has half a surrogate pair, which UTF-8 cannot hold` }
}

type Replacement = {
  readonly spot: Place
  readonly given: string
  readonly bytes: Uint8Array
  /** What the new text was made from: if the file is no longer this one, nothing is replaced. */
  readonly basis?: Stats
}

/** Undefined when done. On any failure the old file is untouched and the temporary one is gone. */
export function replace({ spot, given, bytes, basis }: Replacement): Refusal | undefined {
  const temporary = temporaryName()
  try {
    fill(spot, temporary, bytes)
    if (basis !== undefined && !unchanged(spot, basis)) return changed(spot.folder, temporary, given)
    renameSync(slot(spot.folder, temporary), slot(spot.folder, spot.name))
  } catch (error) {
    remove(spot.folder, temporary)
    return { ok: false, message: `${quote(given)} was not written, what was there is unchanged: ${explain(error)}` }
  }
  return syncFolder(spot.folder, given)
}

function fill({ folder, previous }: Place, temporary: string, bytes: Uint8Array): void {
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

/** Someone else's file in a folder that we may write: only root can keep the owner. The mode is set afterwards, so nothing widens. */
function keepOwner(file: Handle, previous: Stats): void {
  try {
    fchownSync(file.fd, previous.uid, previous.gid)
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error
  }
}

/** A full disk makes a write short without an error; only the next one fails. */
function writeAll(file: Handle, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    const count = writeSync(file.fd, bytes, at, bytes.length - at)
    if (count === 0) throw new Error(`only ${at} of ${bytes.length} bytes could be written`)
    at += count
  }
}

function unchanged({ folder, name }: Place, basis: Stats): boolean {
  const now = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  return (
    now !== undefined && now.ino === basis.ino && now.size === basis.size && now.mtimeMs === basis.mtimeMs && now.ctimeMs === basis.ctimeMs
  )
}

function changed(folder: Handle, temporary: string, given: string): Refusal {
  remove(folder, temporary)
  return { ok: false, message: `${quote(given)} was changed by someone else meanwhile; read it again and repeat the edit` }
}

function remove(folder: Handle, temporary: string): void {
  try {
    unlinkSync(slot(folder, temporary))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function syncFolder(folder: Handle, given: string): Refusal | undefined {
  try {
    using open = hold(slot(folder, '.'), flags.syncFolder)
    fsyncSync(open.fd)
  } catch (error) {
    // A folder that we may write but not read cannot be flushed; the file itself is.
    if (codeOf(error) === 'EACCES') return undefined
    return { ok: false, message: `${quote(given)} was written but may not survive a power cut: ${explain(error)}` }
  }
}
