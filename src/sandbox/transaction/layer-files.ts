/**
 * Reads and removes files, folders and extended attributes by names of any bytes, in slices that let the rest of the process work; a path is
 * a string with one character per byte (latin1).
 */

import { ptr } from 'bun:ffi'
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs'
import { atEnd } from '../../kit/errors.ts'
import type { Libc } from '../libc.ts'
import { fixedPath } from '../trial-key.ts'

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants
/** The number of the system call that lists a folder. */
const GETDENTS = process.arch === 'arm64' ? 61n : 217n
const CHUNK = 65_536

/** Converts a path of ours to a path with one character per byte. */
export function bytePath(path: string): string {
  return Buffer.from(path).toString('latin1')
}

export function bytesOf(path: string): Buffer {
  return Buffer.from(path, 'latin1')
}

/** @returns undefined if nothing has that name */
export function lookAt(path: string): Stats | undefined {
  return lstatSync(bytesOf(path), { throwIfNoEntry: false })
}

export function linkTarget(path: string): string {
  return readlinkSync(bytesOf(path), { encoding: 'buffer' }).toString()
}

/** Opens a regular file; a link, or what is not a regular file, is an error. */
function openRegular(path: string): number {
  const descriptor = openSync(bytesOf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw new Error('it is not a regular file any more')
}

/** Lists a folder in pieces, so that a folder of a million files takes no memory. In no order. */
export function* pieces(libc: Libc, path: string): Generator<readonly string[]> {
  const descriptor = openSync(bytesOf(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  const buffer = Buffer.alloc(CHUNK)
  using _end = atEnd(() => closeSync(descriptor))
  for (;;) {
    const size = Number(libc.syscall(GETDENTS, BigInt(descriptor), BigInt(ptr(buffer)), BigInt(CHUNK), 0n, 0n))
    if (size < 0) throw new Error('it cannot be listed')
    if (size === 0) return
    const names: string[] = []
    for (let at = 0; at < size; at += buffer.readUInt16LE(at + 16)) names.push(nameAt(buffer, at + 19))
    yield names.filter((name) => name !== '.' && name !== '..')
  }
}

/** Lists a folder of ours in no order. */
export function namesIn(libc: Libc, path: string): string[] {
  return [...pieces(libc, path)].flat()
}

function nameAt(buffer: Buffer, start: number): string {
  return buffer.toString('latin1', start, buffer.indexOf(0, start))
}

/** Numbers of lseek and of its ways to look for data and holes. */
const [LSEEK, SEEK_DATA, SEEK_HOLE] = [process.arch === 'arm64' ? 62n : 8n, 3n, 4n]
const BLOCK = 512

/**
 * Hashes regular files one after the other; the digest is that of the plain content, but a hole is not read. `pause` lets other work of the
 * process continue during a large one, and may throw to stop.
 */
export function createFileHasher(libc: Libc, pause: Pause): (path: string) => Promise<string> {
  const buffer = Buffer.alloc(CHUNK)
  const zeros = Buffer.alloc(CHUNK)
  const seek = (descriptor: number, at: number, way: bigint) => Number(libc.syscall(LSEEK, BigInt(descriptor), BigInt(at), way, 0n, 0n))

  /** @returns where the next data is, or the end of the file */
  function dataFrom(descriptor: number, at: number, end: number): number {
    const next = seek(descriptor, at, SEEK_DATA)
    return next < 0 ? end : Math.min(next, end)
  }

  return async (path) => {
    const descriptor = openRegular(path)
    using _end = atEnd(() => closeSync(descriptor))
    const first = readSync(descriptor, buffer)
    // A short read is the end of a regular file.
    if (first < CHUNK) return Bun.CryptoHasher.hash('sha256', buffer.subarray(0, first), 'hex')
    const hasher = new Bun.CryptoHasher('sha256').update(buffer)
    const { size: end, blocks } = fstatSync(descriptor)
    const isSparse = blocks * BLOCK < end && seek(descriptor, 0, SEEK_HOLE) >= 0
    for (let [at, size] = [CHUNK, CHUNK]; size === CHUNK; at += size) {
      await pause()
      for (const data = isSparse ? dataFrom(descriptor, at, end) : at; at < data; at += size) {
        size = Math.min(CHUNK, data - at)
        hasher.update(zeros.subarray(0, size))
        await pause()
      }
      size = readSync(descriptor, buffer, 0, CHUNK, at)
      hasher.update(buffer.subarray(0, size))
    }
    return hasher.digest('hex')
  }
}

export type Attributes = {
  /** The folder hides everything that the layers below have in it. */
  isOpaque(path: string): boolean
  /** Removes attributes that a command set with the name of one of the overlay's own. */
  strip(path: string): void
}

const OPAQUE = Buffer.from('user.overlay.opaque\0')
const PLANTED = 'user.overlay.overlay.'

export function createAttributes(libc: Libc): Attributes {
  const value = Buffer.alloc(8)
  const list = Buffer.alloc(CHUNK)
  const ended = (text: string) => Buffer.from(`${text}\0`, 'latin1')
  return {
    isOpaque: (path) => Number(libc.lgetxattr(ended(path), OPAQUE, value, value.length)) === 1 && value[0] === 0x79,
    strip(path) {
      const name = ended(path)
      const size = Number(libc.llistxattr(name, list, list.length))
      if (size <= 0) return
      for (const one of list.toString('latin1', 0, size).split('\0')) if (one.startsWith(PLANTED)) libc.lremovexattr(name, ended(one))
    },
  }
}

export type Pause = () => Promise<void>

/** The longest time that the event loop waits, in milliseconds. */
const SLICE_MS = 4

/** @returns a function to await often: it waits only at the end of a slice */
export function createPause(): Pause {
  const state = { since: performance.now() }
  const done = Promise.resolve()
  const wait = async () => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    state.since = performance.now()
  }
  return () => (performance.now() - state.since < SLICE_MS ? done : wait())
}

/** Removing so many names takes some 20 ms. */
const AT_ONCE = 1_000

/** Folders may lack permissions: the kernel makes such ones for its own use, and a command can make others. */
const script = 'chmod -R u+rwX -- "$1" 2>/dev/null; rm -rf -- "$1"'

/** A small folder is gone when it returns; another process removes the rest of a large one. */
export function removeTree(folder: string): void {
  try {
    removeSome(bytePath(folder), { left: AT_ONCE })
  } catch {
    const env = { PATH: fixedPath }
    Bun.spawn(['/bin/sh', '-c', script, 'sh', folder], { cwd: '/', env, stdio: ['ignore', 'ignore', 'ignore'], detached: true }).unref()
  }
}

/** @throws Error when there is more to remove than `budget` allows, or something cannot be removed this way */
function removeSome(path: string, budget: { left: number }): void {
  const stat = lstatSync(bytesOf(path), { throwIfNoEntry: false })
  if (stat === undefined) return
  if (--budget.left < 0) throw new Error('too much to remove at once')
  if (!stat.isDirectory()) {
    unlinkSync(bytesOf(path))
    return
  }
  widen(path, stat, 0o700)
  // The kernel keeps the size of a folder that was large once.
  if (stat.size > 200 * AT_ONCE) throw new Error('too much to read at once')
  for (const name of readdirSync(bytesOf(path), { encoding: 'buffer' })) removeSome(`${path}/${name.toString('latin1')}`, budget)
  rmdirSync(bytesOf(path))
}

/** Gives us the missing permissions for a file or folder of ours. */
export function widen(path: string, { mode }: Pick<Stats, 'mode'>, needed: number): void {
  if ((mode & needed) !== needed) chmodSync(bytesOf(path), (mode & 0o7777) | needed)
}
