/** Reads a configuration file without assuming that it is a regular file, small, or valid text. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { atEnd, attempt, errnoOf } from '../../kit/errors.ts'

export type FileRead =
  | { readonly state: 'text'; readonly text: string; readonly worldWritable: boolean }
  | { readonly state: 'missing' }
  | { readonly state: 'unusable'; readonly why: string; readonly line?: number }

export const maxConfigBytes = 1_048_576

/** Never throws and never hangs: it opens a FIFO without waiting. */
export function readConfigFile(path: string, maxBytes = maxConfigBytes): FileRead {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    using _end = atEnd(() => closeSync(fd))
    return readOpen(fd, maxBytes)
  } catch (error) {
    const code = errorCode(error)
    return code === 'ENOENT' ? { state: 'missing' } : { state: 'unusable', why: `cannot be read: ${explainErrno(code)}` }
  }
}

function readOpen(fd: number, maxBytes: number): FileRead {
  const { size, mode } = fstatSync(fd)
  const type = mode & constants.S_IFMT
  if (type === constants.S_IFDIR) return { state: 'unusable', why: 'is a folder, not a file; move it away and run "braidclaw init"' }
  if (type !== constants.S_IFREG) return { state: 'unusable', why: 'is not a regular file' }
  if (size > maxBytes) return { state: 'unusable', why: `has ${size} bytes; the limit is ${maxBytes}` }
  const bytes = readAll(fd, size)
  return bytes.length > size ? { state: 'unusable', why: 'grew while it was read; try again' } : decode(bytes, (mode & 0o002) !== 0)
}

/** Tries to read one byte more than expected, to detect a file that grows meanwhile. */
function readAll(fd: number, size: number): Uint8Array {
  const buffer = new Uint8Array(size + 1)
  let length = 0
  while (length < buffer.length) {
    const count = readSync(fd, buffer, length, buffer.length - length, null)
    if (count === 0) break
    length += count
  }
  return buffer.subarray(0, length)
}

function decode(bytes: Uint8Array, worldWritable: boolean): FileRead {
  const text = utf8(bytes)
  if (text !== undefined) return { state: 'text', text, worldWritable }
  return { state: 'unusable', why: 'is not valid UTF-8; save it as UTF-8 text', line: firstBadLine(bytes) }
}

function firstBadLine(bytes: Uint8Array): number {
  let line = 1
  let start = 0
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    if (utf8(bytes.subarray(start, end)) === undefined) return line
    start = end + 1
    line++
  }
  return line
}

function utf8(bytes: Uint8Array): string | undefined {
  return attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
}

export function errorCode(error: unknown): string {
  return errnoOf(error) ?? String(error)
}

/** Describes a file system error, with what to do where the user can do something. */
export function explainErrno(code: string): string {
  const words = errno[code]
  return words === undefined ? code : `${words} (${code})`
}

const errno: { readonly [code: string]: string } = {
  EACCES: 'permission denied; check the owner and the mode with "ls -ld"',
  EPERM: 'the system does not permit it; check the owner with "ls -ld"',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder, not a file',
  EEXIST: 'something else is there already',
  ELOOP: 'its symbolic links lead in a circle',
  EROFS: 'the disk is read-only; set BRAIDCLAW_HOME to a writable folder',
  ENOSPC: 'the disk is full; free some space and try again',
  EDQUOT: 'the disk quota is used up; free some space and try again',
  EIO: 'the disk reports an error',
  ENAMETOOLONG: 'the path is too long',
  ENXIO: 'it is not a regular file',
}
