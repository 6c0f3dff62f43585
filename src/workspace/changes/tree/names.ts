/** Converts the names of a change set: a raw name has one character per byte (latin1), because a file name need not be UTF-8. */

import { type Handle, slot } from '../../descriptor.ts'

/** A path relative to the workspace, or one part of it, with one character per byte. */
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

/** @returns true when a path names something in the workspace and nothing else */
export function isInside(raw: RawName): boolean {
  return raw.length > 0 && !raw.includes('\0') && raw.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}
