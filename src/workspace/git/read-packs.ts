/** Reads the packs of a git repository: their indexes, and single objects as they are packed. */

import { fstatSync, readSync } from 'node:fs'
import { inflateSync } from 'node:zlib'
import { namesIn } from '../../kit/proc.ts'

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag'
const mostObjectBytes = 16 * 1024 ** 2
const packTypes: { readonly [code: number]: ObjectType } = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' }

export type Pack = { readonly index: number; readonly data: number; readonly key: string; readonly fanout: Buffer }
/** A packed object without a type is a delta: `base` is the place of another one in the pack, or its id. */
export type Packed = { readonly type: ObjectType | undefined; readonly content: Buffer; readonly base?: string | number }

/** @param open returns a descriptor of a file. @returns the packs with an index that fits; the folders are absolute */
export function openPacks(folders: readonly string[], open: (path: string) => number | undefined): readonly Pack[] {
  return folders.flatMap((folder) =>
    namesIn(`${folder}/pack`).flatMap((name): readonly Pack[] => {
      const [index, data] = name.endsWith('.idx') ? ['idx', 'pack'].map((end) => open(`${folder}/pack/${name.slice(0, -3)}${end}`)) : []
      if (index === undefined || data === undefined) return []
      const [fanout, head] = [bytesAt(index, 0, 1_032), bytesAt(data, 0, 12)]
      const isKnown = fanout.length === 1_032 && fanout.readUInt32BE(0) === 0xff744f63 && fanout.readUInt32BE(4) === 2
      const isWhole = isKnown && head.length === 12 && head.readUInt32BE(8) === fanout.readUInt32BE(1_028)
      return isWhole ? [{ index, data, fanout, key: `${folder}/${name}` }] : []
    }),
  )
}

/** @returns undefined when there are more ids than `limit` */
export function packedIds(packs: readonly Pack[], limit: number): ReadonlySet<string> | undefined {
  const found = new Set<string>()
  for (const { index, fanout } of packs) {
    const number = fanout.readUInt32BE(1_028)
    if (found.size + number > limit) return undefined
    const idBytes = idBytesOf(number, fstatSync(index).size)
    const ids = bytesAt(index, 1_032, number * idBytes)
    for (let at = 0; at + idBytes <= ids.length; at += idBytes) found.add(ids.toString('hex', at, at + idBytes))
  }
  return found
}

function bytesAt(fd: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(fd, bytes, 0, length, at))
}

/** An index has for each object an id, a checksum and an offset of four bytes; 1,032 bytes stand before them and two ids after them. */
function idBytesOf(number: number, bytes: number): number {
  return bytes >= 1_032 + number * 40 + 64 ? 32 : 20
}

export function offsetOf({ index, fanout }: Pack, id: Buffer): number | undefined {
  const first = id[0] ?? 0
  const all = fanout.readUInt32BE(1_028)
  let [low, high] = [first === 0 ? 0 : fanout.readUInt32BE(8 + (first - 1) * 4), fanout.readUInt32BE(8 + first * 4)]
  while (low < high) {
    const middle = (low + high) >>> 1
    const order = Buffer.compare(id, bytesAt(index, 1_032 + middle * id.length, id.length))
    if (order === 0) {
      const offsets = 1_032 + all * (id.length + 4)
      const offset = bytesAt(index, offsets + middle * 4, 4).readUInt32BE(0)
      if (offset < 0x80000000) return offset
      return Number(bytesAt(index, offsets + all * 4 + (offset - 0x80000000) * 8, 8).readBigUInt64BE(0))
    }
    if (order < 0) high = middle
    else low = middle + 1
  }
  return undefined
}

/** @throws Error for bytes that are not an object, or too many */
export function entryAt(fd: number, start: number, idBytes: number): Packed {
  const head = bytesAt(fd, start, 64)
  let at = 0
  let byte = head[at++] ?? 0
  const code = (byte >> 4) & 7
  let size = byte & 15
  for (let unit = 16; byte & 0x80; unit *= 128) {
    byte = head[at++] ?? 0
    size += (byte & 0x7f) * unit
  }
  if (size > mostObjectBytes) throw new Error('an object that is too large')
  const distance = { value: 0 }
  const base = code === 7 ? head.toString('hex', at, at + idBytes) : undefined
  if (code === 7) at += idBytes
  if (code === 6) {
    byte = head[at++] ?? 0
    distance.value = byte & 0x7f
    while (byte & 0x80) {
      byte = head[at++] ?? 0
      distance.value = (distance.value + 1) * 128 + (byte & 0x7f)
    }
  }
  const packed = bytesAt(fd, start + at, size + (size >> 8) + 1_024)
  const content = inflateSync(packed, { maxOutputLength: Math.max(1, size) })
  if (content.length !== size) throw new Error('an object of another size')
  return { type: packTypes[code], content, ...(code === 6 ? { base: start - distance.value } : base === undefined ? {} : { base }) }
}

/** @returns the object that a delta makes of its base @throws Error for a delta that does not fit */
export function patched(base: Buffer, delta: Buffer): Buffer {
  const state = { at: 0 }
  const number = () => {
    let [value, unit, byte] = [0, 1, 0x80]
    while (byte & 0x80) {
      byte = delta[state.at++] ?? 0
      value += (byte & 0x7f) * unit
      unit *= 128
    }
    return value
  }
  const [from, size] = [number(), number()]
  if (from !== base.length || size > mostObjectBytes) throw new Error('a delta for another object')
  const made = Buffer.alloc(size)
  let end = 0
  while (state.at < delta.length) {
    const code = delta[state.at++] ?? 0
    if (code & 0x80) {
      const part = (bits: readonly number[]) =>
        bits.reduce((sum, bit, place) => (code & bit ? sum + (delta[state.at++] ?? 0) * 256 ** place : sum), 0)
      const [offset, length] = [part([1, 2, 4, 8]), part([16, 32, 64]) || 0x10000]
      end += base.copy(made, end, offset, offset + length)
    } else {
      end += delta.copy(made, end, state.at, state.at + code)
      state.at += code
    }
  }
  if (end !== size) throw new Error('a delta of another size')
  return made
}
