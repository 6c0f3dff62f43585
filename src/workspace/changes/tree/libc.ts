/** Calls the system functions for files that the runtime does not offer, through the C library that is loaded anyway. */

import { dlopen, read } from 'bun:ffi'
import { constants } from 'node:os'
import { withLibc } from '../../../kit/proc.ts'
import type { Handle } from '../../descriptor.ts'
import { deviceText, type EntryStat, lstat, type RawName } from './entry.ts'

const RENAMEAT2 = process.arch === 'arm64' ? 276n : 316n
const STATX = process.arch === 'arm64' ? 291n : 332n
const STATX_BASIC = 0x7ff
const ENOENT = 2
const EAGAIN = 11
const AT_SYMLINK_NOFOLLOW = 0x100
const LOCK_EXCLUSIVE_NOW = 2 | 4
const LOCK_SHARED_NOW = 1 | 4
const LIST_BYTES = 65_536

/** How a rename treats a name that exists: `replace` it, fail (`create`), or let both change places (`exchange`). */
const RENAME = { replace: 0, create: 1, exchange: 2 } as const

export type RenameKind = keyof typeof RENAME

export type EntryPlace = { readonly folder: Handle; readonly name: RawName }

export type Libc = {
  /** The same as `lstat` of entry.ts, in a third of the time. */
  lstat(folder: Handle, name: RawName): EntryStat | undefined
  /** @throws an error with the system's code */
  rename(from: EntryPlace, to: EntryPlace, kind: RenameKind): void
  /**
   * @param seconds and nanoseconds of the last modification; a link itself is meant, never what it leads to. @throws an error with the
   * system's code
   */
  setModified(at: EntryPlace, time: { readonly seconds: bigint; readonly nanoseconds: bigint }): void
  /** Removes the extended attributes whose name begins so. A file system without attributes has none. */
  removeAttributes(path: string | Buffer, beginning: string): void
  /** Flushes the file system of an open file. @throws an error with the system's code */
  flush(descriptor: number): void
  /**
   * @returns false when another process holds a lock that excludes this one; it ends with the descriptor @throws an error with the system's
   * code
   */
  lock(descriptor: number, options?: { readonly shared: boolean }): boolean
}

/** @throws when neither glibc nor musl is found. It takes half a millisecond: open it once. */
export function openLibc(): Libc {
  const libc = withLibc(symbolsOf)
  const list = Buffer.alloc(LIST_BYTES)
  const stat = new Uint32Array(64)
  const check = (result: number | bigint, call: string) => {
    if (Number(result) !== 0) throw systemError(read.i32(libc.errno() ?? 0), call)
  }
  return {
    lstat(folder, name) {
      if (libc.statx(STATX, folder.fd, ended(name), AT_SYMLINK_NOFOLLOW, STATX_BASIC, stat) === 0) return foundIn(stat)
      return read.i32(libc.errno() ?? 0) === ENOENT ? undefined : lstat(folder, name)
    },
    rename: (from, to, kind) =>
      check(libc.rename(RENAMEAT2, from.folder.fd, ended(from.name), to.folder.fd, ended(to.name), RENAME[kind]), 'rename'),
    setModified(at, { seconds, nanoseconds }) {
      const UTIME_OMIT = 0x3ffffffen
      const times = BigInt64Array.of(0n, UTIME_OMIT, seconds, nanoseconds)
      check(libc.utimensat(at.folder.fd, ended(at.name), times, AT_SYMLINK_NOFOLLOW), 'utimensat')
    },
    removeAttributes(path, beginning) {
      const name = Buffer.concat([Buffer.from(path), Buffer.alloc(1)])
      const size = Number(libc.llistxattr(name, list, list.length))
      if (size <= 0) return
      for (const one of list.toString('latin1', 0, size).split('\0'))
        if (one.startsWith(beginning)) check(libc.lremovexattr(name, ended(one)), 'removexattr')
    },
    flush: (descriptor) => check(libc.syncfs(descriptor), 'syncfs'),
    lock(descriptor, { shared } = { shared: false }) {
      const result = libc.flock(descriptor, shared ? LOCK_SHARED_NOW : LOCK_EXCLUSIVE_NOW)
      if (result !== 0 && read.i32(libc.errno() ?? 0) === EAGAIN) return false
      check(result, 'flock')
      return true
    },
  }
}

/** Indexed by the upper four bits of a mode. */
const KINDS: { readonly [type: number]: EntryStat['kind'] } = { 8: 'file', 4: 'folder', 10: 'link' }

/** Reads a struct statx as words of 32 bits, lower half first. */
function foundIn(stat: Uint32Array): EntryStat {
  const word = (at: number) => stat[at] ?? 0
  const mode = word(7) & 0xffff
  return {
    kind: KINDS[mode >> 12] ?? 'other',
    inode: word(9) === 0 ? String(word(8)) : String((BigInt(word(9)) << 32n) | BigInt(word(8))),
    size: word(10) + word(11) * 2 ** 32,
    mode: mode & 0o7777,
    modified: timeIn(word(28), word(29), word(30)),
    changed: timeIn(word(24), word(25), word(26)),
    uid: word(5),
    gid: word(6),
    device: deviceText(word(34), word(35)),
    links: word(4),
  }
}

function timeIn(low: number, high: number, nanoseconds: number): string {
  if (high === 0 && low !== 0) return `${low}${String(nanoseconds).padStart(9, '0')}`
  return String(BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low)) * 1_000_000_000n + BigInt(nanoseconds))
}

function ended(name: RawName): Buffer {
  return Buffer.from(`${name}\0`, 'latin1')
}

function systemError(number: number, call: string): Error {
  const code = Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `error ${number}`
  return Object.assign(new Error(`${code}: ${call} failed`), { code })
}

function symbolsOf(name: string) {
  const { symbols } = dlopen(name, {
    utimensat: { args: ['i32', 'ptr', 'ptr', 'i32'], returns: 'i32' },
    llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
    lremovexattr: { args: ['ptr', 'ptr'], returns: 'i32' },
    syncfs: { args: ['i32'], returns: 'i32' },
    flock: { args: ['i32', 'i32'], returns: 'i32' },
    __errno_location: { args: [], returns: 'ptr' },
  })
  const renaming = dlopen(name, { syscall: { args: ['i64', 'i32', 'ptr', 'i32', 'ptr', 'u32'], returns: 'i32' } })
  const looking = dlopen(name, { syscall: { args: ['i64', 'i32', 'ptr', 'i32', 'u32', 'ptr'], returns: 'i32' } })
  const { __errno_location: errno, ...others } = symbols
  return { ...others, errno, rename: renaming.symbols.syscall, statx: looking.symbols.syscall }
}
