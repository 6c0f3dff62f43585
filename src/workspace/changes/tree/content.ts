/** Reads the content of files in a change set by descriptor. */

import { fstatSync, readlinkSync, readSync } from 'node:fs'
import { flags, hold } from '../../descriptor.ts'
import type { Place } from './libc.ts'
import { rawSlot } from './names.ts'
import type { Pace } from './pace.ts'

const CHUNK = 1024 * 1024

/** @returns SHA-256 in hex @throws the system's error */
export async function digestAt({ folder, name }: Place, pace: Pace): Promise<string> {
  using file = hold(rawSlot(folder, name), flags.readHere)
  const hasher = new Bun.CryptoHasher('sha256')
  const buffer = Buffer.alloc(CHUNK)
  for (let size = readSync(file.fd, buffer); size > 0; size = readSync(file.fd, buffer)) {
    hasher.update(buffer.subarray(0, size))
    await pace()
  }
  return hasher.digest('hex')
}

/** @returns the first `maxBytes` bytes, however large the file is @throws the system's error */
export function startAt({ folder, name }: Place, maxBytes: number): Buffer {
  using file = hold(rawSlot(folder, name), flags.readHere)
  const buffer = Buffer.alloc(Math.min(maxBytes, fstatSync(file.fd).size))
  let length = 0
  for (let size = 1; size > 0 && length < buffer.length; length += size)
    size = readSync(file.fd, buffer, length, buffer.length - length, null)
  return buffer.subarray(0, length)
}

/** @returns what a symbolic link contains @throws the system's error */
export function linkTextAt({ folder, name }: Place): string {
  return readlinkSync(rawSlot(folder, name), { encoding: 'buffer' }).toString()
}
