/** Reads the content of files in a change set by descriptor. */

import { readlinkSync, readSync } from 'node:fs'
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

/** @returns the first `maxBytes` bytes, and the digest of the whole file @throws the system's error */
export function contentAt({ folder, name }: Place, maxBytes: number): { readonly bytes: Uint8Array; readonly sha256: string } {
  using file = hold(rawSlot(folder, name), flags.readHere)
  const hasher = new Bun.CryptoHasher('sha256')
  const buffer = Buffer.alloc(CHUNK)
  const kept: Buffer[] = []
  let room = maxBytes
  for (let size = readSync(file.fd, buffer); size > 0; size = readSync(file.fd, buffer)) {
    const chunk = buffer.subarray(0, size)
    hasher.update(chunk)
    if (room > 0) kept.push(Buffer.from(chunk.subarray(0, room)))
    room -= size
  }
  return { bytes: Buffer.concat(kept), sha256: hasher.digest('hex') }
}

/** @returns what a symbolic link contains @throws the system's error */
export function linkTextAt({ folder, name }: Place): string {
  return readlinkSync(rawSlot(folder, name), { encoding: 'buffer' }).toString()
}
