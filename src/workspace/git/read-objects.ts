/**
 * Reads the objects of a git repository from its files, loose or packed. No git runs, so no setting, replaced object or graft counts, and
 * each object is compared with its id.
 */

import { closeSync, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs'
import { inflateSync } from 'node:zlib'
import { attempt } from '../../kit/errors.ts'
import { flags } from '../descriptor.ts'
import { entryAt, type ObjectType, offsetOf, openPacks, type Pack, type Packed, packedIds, patched } from './read-packs.ts'

export type GitObject = { readonly type: ObjectType; readonly content: Buffer }

export type Objects = Disposable & {
  /** @returns undefined for an object that is missing, broken or too large @throws GitLimit */
  read(id: string): GitObject | undefined
  has(id: string): boolean
  /** @returns the ids in the packs that `isThere` accepts; undefined when there are more than `most` */
  packed(most: number): ReadonlySet<string> | undefined
}

/** Says that the objects together are more than is read. */
export class GitLimit extends Error {}

const most = { objects: 50_000, bytes: 256 * 1024 ** 2, objectBytes: 16 * 1024 ** 2, chain: 300, cached: 2_000, cachedBytes: 64 * 1024 }
const tooMuch = 'it has more objects, or larger ones, than are read'

/** @param folders absolute object folders; the first one that holds an object counts. @param isThere leaves out files by their absolute path */
export function openObjects(folders: readonly string[], isThere: (path: string) => boolean = () => true): Objects {
  const left = { objects: most.objects, bytes: most.bytes }
  const opened: number[] = []
  const cache = new Map<string, GitObject>()
  const remember = (key: string, object: GitObject) => {
    if (cache.size >= most.cached) cache.clear()
    if (object.content.length <= most.cachedBytes) cache.set(key, object)
    return object
  }
  const state: { packs?: readonly Pack[] } = {}

  function open(path: string): number | undefined {
    return attempt(() => {
      if (!isThere(path)) return
      const fd = openSync(path, flags.read)
      opened.push(fd)
      return fstatSync(fd).isFile() ? fd : undefined
    })
  }

  const packs = () => (state.packs ??= openPacks(folders, open))

  function loosePath(id: string): string | undefined {
    return folders.map((folder) => `${folder}/${id.slice(0, 2)}/${id.slice(2)}`).find((path) => isThere(path) && isFile(path))
  }

  function readPacked(pack: Pack, start: number, idBytes: number): GitObject | undefined {
    const deltas: Buffer[] = []
    let at = start
    for (let depth = 0; depth < most.chain; depth++) {
      const piece: Packed = cache.get(`${pack.key}:${at}`) ?? entryAt(pack.data, at, idBytes)
      if (piece.type !== undefined)
        return remember(`${pack.key}:${start}`, { type: piece.type, content: deltas.reduceRight(patched, piece.content) })
      deltas.push(piece.content)
      // Each delta of a chain makes an object that may be as large as the last one.
      left.bytes -= piece.content.length + (deltas[0]?.length ?? 0)
      if (left.bytes < 0) throw new GitLimit(tooMuch)
      if (typeof piece.base === 'number') at = piece.base
      else {
        const base = piece.base === undefined ? undefined : read(piece.base)
        return base && { type: base.type, content: deltas.reduceRight(patched, base.content) }
      }
    }
    return undefined
  }

  function read(id: string): GitObject | undefined {
    if (--left.objects < 0 || left.bytes < 0) throw new GitLimit(tooMuch)
    try {
      const place = placeOf(packs(), id)
      const found = (place && readPacked(place.pack, place.offset, id.length / 2)) ?? looseAt(loosePath(id))
      left.bytes -= found?.content.length ?? 0
      return found && objectId(found, id.length) === id ? found : undefined
    } catch (error) {
      if (error instanceof GitLimit) throw error
      return undefined
    }
  }

  return {
    read,
    has: (id) => loosePath(id) !== undefined || placeOf(packs(), id) !== undefined,
    packed: (limit) => packedIds(packs(), limit),
    [Symbol.dispose]() {
      for (const fd of opened) closeSync(fd)
    },
  }
}

function placeOf(packs: readonly Pack[], id: string) {
  const bytes = Buffer.from(id, 'hex')
  for (const pack of packs) {
    const offset = offsetOf(pack, bytes)
    if (offset !== undefined) return { pack, offset }
  }
  return undefined
}

function looseAt(path: string | undefined): GitObject | undefined {
  const content = path === undefined ? undefined : inflateSync(readFileSync(path), { maxOutputLength: most.objectBytes })
  const end = content?.indexOf(0) ?? -1
  const [, type] = /^(commit|tree|blob|tag) \d+$/.exec(content?.toString('latin1', 0, Math.max(0, Math.min(end, 40))) ?? '') ?? []
  return content && type ? { type: type as ObjectType, content: content.subarray(end + 1) } : undefined
}

export function objectId({ type, content }: GitObject, digits: number): string {
  const hasher = new Bun.CryptoHasher(digits === 64 ? 'sha256' : 'sha1')
  return hasher.update(`${type} ${content.length}\0`).update(content).digest('hex')
}

function isFile(path: string): boolean {
  const stat = attempt(() => lstatSync(path))
  return stat?.isFile() === true && stat.size <= most.objectBytes
}
