/** Reads the catalogue that decides what root runs: the built-in one, or a file that only root or we can change. */

import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode, explainErrno, maxConfigBytes } from '../../../config/text/read-toml-file.ts'
import { builtInCatalogue } from './built-in.ts'
import { type ParsedCatalogue, parseCatalogue } from './parse-catalogue.ts'

export type ReadCatalogue = { readonly ok: true; readonly parsed: ParsedCatalogue } | { readonly ok: false; readonly message: string }

export function readCatalogue(path: string | undefined, uid: number): ReadCatalogue {
  if (path === undefined) return { ok: true, parsed: parseCatalogue(builtInCatalogue) }
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      return readOpen(file, path, uid)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const code = errorCode(error)
    const why = code === 'ELOOP' ? 'it is a symbolic link; name the file itself' : explainErrno(code)
    return { ok: false, message: `the catalogue "${path}" cannot be read: ${why}` }
  }
}

function readOpen(file: number, path: string, uid: number): ReadCatalogue {
  const found = fstatSync(file)
  if (!found.isFile()) return { ok: false, message: `the catalogue "${path}" is no regular file` }
  if (found.size > maxConfigBytes)
    return { ok: false, message: `the catalogue "${path}" has ${found.size} bytes; the limit is ${maxConfigBytes}` }
  const unsafe = whyUnsafe(found, path, uid) ?? unsafeFolder(path, uid)
  return unsafe === undefined ? { ok: true, parsed: parseCatalogue(readFileSync(file, 'utf8')) } : { ok: false, message: unsafe }
}

type Owned = { readonly uid: number; readonly mode: number }

/** @returns why others could change it */
export function whyUnsafe({ uid: owner, mode }: Owned, path: string, uid: number): string | undefined {
  if (owner !== 0 && owner !== uid) return `"${path}" belongs to user ${owner}; it must belong to root or to the user of hostd (${uid})`
  if (mode & 0o022) return `"${path}" can be written by others (mode ${(mode & 0o777).toString(8)}); run: chmod go-w "${path}"`
}

/** Who may rename a folder on the way could put another file there. In a sticky folder such as /tmp only owners rename. */
export function unsafeFolder(path: string, uid: number): string | undefined {
  const folder = realpathSync(dirname(path))
  for (let at = folder; ; at = dirname(at)) {
    const found = lstatSync(at)
    const isSticky = (found.mode & 0o1000) !== 0
    const unsafe = whyUnsafe({ uid: found.uid, mode: isSticky ? 0 : found.mode }, at, uid)
    if (unsafe !== undefined || at === dirname(at)) return unsafe
  }
}
