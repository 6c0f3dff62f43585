/**
 * Holds files by descriptor, so that the checked file is the file that is read, even if its name changes meanwhile. Linux only: it needs
 * O_PATH and /proc/self/fd, and there is no fallback for other systems.
 */

import { closeSync, constants, fstatSync, openSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { errnoOf, errorText } from '../kit/errors.ts'

// node:fs does not export these two; the values are those of x86-64, arm64 and riscv64.
const O_PATH = 0o10000000
const O_CLOEXEC = 0o2000000

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/**
 * `look` opens nothing for reading, so a FIFO does not block and a device has no side effect; `read` is for a descriptor that was already
 * checked.
 */
export const flags = {
  look: O_PATH | O_CLOEXEC,
  lookHere: O_PATH | O_NOFOLLOW | O_CLOEXEC,
  folder: O_PATH | O_DIRECTORY | O_CLOEXEC,
  childFolder: O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
  read: O_RDONLY | O_NONBLOCK | O_CLOEXEC,
  readHere: O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC,
  create: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
  syncFolder: O_RDONLY | O_DIRECTORY | O_CLOEXEC,
} as const

export type Handle = Disposable & { readonly fd: number }

/** @throws the system's error */
export function hold(path: string | Buffer, how: number, mode?: number): Handle {
  const fd = openSync(path, how, mode)
  return { fd, [Symbol.dispose]: () => closeSync(fd) }
}

/** @returns a path to the descriptor itself, or to a name in the folder it holds, that no rename or symbolic link above it can redirect */
export function slot(held: Handle, name?: string): string {
  return name === undefined ? `/proc/self/fd/${held.fd}` : `/proc/self/fd/${held.fd}/${name}`
}

/** @returns the current absolute path of the held file without symbolic links; undefined when the file no longer has that name */
export function realPath(held: Handle): string | undefined {
  const text = readlinkSync(slot(held))
  if (!text.startsWith('/')) return undefined
  // The kernel adds this suffix to a removed name. A file may really have such a name, and then it still exists.
  if (text.endsWith(' (deleted)') && !isSame(text, fstatSync(held.fd))) return undefined
  return text
}

function isSame(path: string, stat: Stats): boolean {
  const there = statSync(path, { throwIfNoEntry: false })
  return there !== undefined && there.ino === stat.ino && there.dev === stat.dev
}

export function codeOf(error: unknown): string {
  return errnoOf(error) ?? 'unknown'
}

const meanings: { readonly [code: string]: string } = {
  EACCES: 'permission denied',
  EPERM: 'the system does not permit it',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic links go round in circles',
  ENAMETOOLONG: 'the name is too long (at most 255 bytes a name, 4,095 a path)',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than the system allows',
  EROFS: 'the file system is read-only',
  EIO: 'the disk reported an input/output error',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open on this system',
  ENXIO: 'it is a device or socket without a peer',
}

/** Describes a system error in words, with its code. */
export function explain(error: unknown): string {
  const code = errnoOf(error) ?? ''
  const meaning = meanings[code]
  if (meaning !== undefined) return `${meaning} (${code})`
  return errorText(error)
}
