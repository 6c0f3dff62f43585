/** Manages `trusted_folders`, the list of folders whose config file, rules and AGENTS.md are used: one absolute path per line. */

import { appendFileSync, constants, mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { errorCode, explainErrno, readConfigFile } from './text/read-toml-file.ts'
import { quote } from './text/toml.ts'

export type TrustResult =
  | { readonly ok: true; readonly folder: string; readonly changed: boolean }
  | { readonly ok: false; readonly why: string }

export type TrustList = { readonly folders: readonly string[]; readonly notices: readonly string[] }

export type Trust = {
  /** Returns whether this folder or a parent of it is listed. Compares real paths, with symbolic links resolved. */
  isTrusted(folder: string): boolean
  /**
   * Reads the list from disk. A list that is unreadable or writable by others trusts nothing and returns a notice; so does a line without
   * an absolute path.
   */
  list(): TrustList
  /** `folder` is absolute. `changed` is false when the list already contains the folder. */
  add(folder: string): TrustResult
  /** Removes the folder's own line; the folder stays trusted if a parent is listed. */
  remove(folder: string): TrustResult
}

/** `file` need not exist yet. No method throws because of file system errors. */
export function createTrust(file: string): Trust {
  return {
    isTrusted: (folder) => covers(readList(file).folders, folder),
    list: () => readList(file),
    add: (folder) => add(file, folder),
    remove: (folder) => remove(file, folder),
  }
}

function readList(file: string): TrustList {
  const read = readConfigFile(file)
  if (read.state === 'missing') return { folders: [], notices: [] }
  const bad = read.state === 'unusable' ? `${file} ${read.why}` : othersMayWrite(file)
  if (read.state === 'unusable' || bad !== undefined) return { folders: [], notices: [`no folder is trusted: ${bad}`] }
  const lines = read.text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const odd = lines.filter((line) => !isAbsolute(line))
  const notices = odd.map((line) => `${file}: ${quote(line)} is not an absolute path and trusts nothing`)
  return { folders: [...new Set(lines.filter((line) => isAbsolute(line)))], notices }
}

function othersMayWrite(file: string): string | undefined {
  const wide = (statSync(file).mode & (constants.S_IWGRP | constants.S_IWOTH)) !== 0
  return wide ? `others may write ${file}; check what stands in it, then run: chmod 600 ${file}` : undefined
}

function covers(folders: readonly string[], folder: string): boolean {
  const real = realFolder(folder)
  return real.ok && folders.some((listed) => real.folder === listed || real.folder.startsWith(`${listed.replace(/\/+$/, '')}/`))
}

function add(file: string, folder: string): TrustResult {
  const real = realFolder(folder)
  if (!real.ok) return real
  if (real.folder === '/') return { ok: false, why: '"/" would trust every folder of this machine; name the project' }
  const { folders, notices } = readList(file)
  if (folders.includes(real.folder)) return { ok: true, folder: real.folder, changed: false }
  const [blocked] = notices.filter((notice) => notice.startsWith('no folder is trusted'))
  if (blocked !== undefined) return { ok: false, why: blocked }
  return writing(real.folder, () => append(file, real.folder))
}

/** A folder that no longer exists is removed under the given path. */
function remove(file: string, folder: string): TrustResult {
  const real = realFolder(folder)
  const name = real.ok ? real.folder : resolve(folder)
  if (!readList(file).folders.includes(name)) return { ok: true, folder: name, changed: false }
  return writing(name, () => without(file, name))
}

function realFolder(folder: string): { readonly ok: true; readonly folder: string } | { readonly ok: false; readonly why: string } {
  try {
    const real = realpathSync(folder)
    if (!statSync(real).isDirectory()) return { ok: false, why: `${quote(folder)} is a file, not a folder` }
    return real.includes('\n') ? { ok: false, why: `${quote(folder)} holds a line break; rename the folder` } : { ok: true, folder: real }
  } catch (error) {
    return { ok: false, why: `${quote(folder)} cannot be trusted: ${explainErrno(errorCode(error))}` }
  }
}

function writing(folder: string, write: () => void): TrustResult {
  try {
    write()
    return { ok: true, folder, changed: true }
  } catch (error) {
    return { ok: false, why: `the list of trusted folders cannot be written: ${explainErrno(errorCode(error))}` }
  }
}

/** Appends in one write, so that concurrent processes lose nothing; first ends a partial last line. */
function append(file: string, line: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const read = readConfigFile(file)
  const torn = read.state === 'text' && read.text !== '' && !read.text.endsWith('\n')
  appendFileSync(file, `${torn ? '\n' : ''}${line}\n`, { mode: 0o600 })
}

function without(file: string, line: string): void {
  const kept = readFileSync(file, 'utf8')
    .split('\n')
    .filter((each) => each !== line)
  const draft = `${file}.${crypto.randomUUID()}`
  writeFileSync(draft, kept.join('\n'), { mode: 0o600, flag: 'wx' })
  renameSync(draft, file)
}
