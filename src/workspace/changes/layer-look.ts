/** Looks at the workspace as it is and as it would be with the changes of a command, which wait in the upper layer of an overlay. */

import { lstatSync, readdirSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import type { EntryState } from '../../runtime/changes.ts'
import { flags, hold } from '../descriptor.ts'
import type { Side } from './contract.ts'

export type LayerLook = {
  read(path: string, side: Side, maxBytes: number): Uint8Array | undefined
  kind(path: string, side: Side): EntryState['kind'] | undefined
  link(path: string, side: Side): string | undefined
  list(path: string, side: Side): readonly string[] | undefined
}

/** Where a path really lies; a folder may lie in both layers. */
type Found = { readonly stat: Stats; readonly places: readonly string[] }

/**
 * Both paths are absolute. It does not know which folders of the upper layer hide those below: the list of changes names every entry that
 * is gone, and whoever asks here has read the list first. Never throws, and never follows a link.
 */
export function createLayerLook({ up, workspace }: { readonly up: string; readonly workspace: string }): LayerLook {
  const folders = new Map<string, Found | undefined>()

  function find(path: string, side: Side): Found | undefined {
    const layers =
      path === '' ? (side === 'before' ? [workspace] : [up, workspace]) : folder(path, side).map((each) => join(each, last(path)))
    const places: string[] = []
    let first: Stats | undefined
    for (const place of layers) {
      const stat = look(place)
      if (stat !== undefined && isWhiteout(stat)) break
      if (stat === undefined || (first !== undefined && !stat.isDirectory())) continue
      first ??= stat
      places.push(place)
      if (!stat.isDirectory()) break
    }
    return first && { stat: first, places }
  }

  /** @returns the places of the folder that holds the path, if it and all above it are folders */
  function folder(path: string, side: Side): readonly string[] {
    const above = path.includes('/') ? dirname(path) : ''
    const key = `${side}:${above}`
    if (!folders.has(key)) folders.set(key, find(above, side))
    const found = folders.get(key)
    return found?.stat.isDirectory() ? found.places : []
  }

  return {
    kind: (path, side) => kindOf(find(path, side)?.stat),
    link(path, side) {
      const found = find(path, side)
      return found?.stat.isSymbolicLink() ? attempt(() => readlinkSync(found.places[0] ?? '')) : undefined
    },
    list(path, side) {
      const found = find(path, side)
      if (!found?.stat.isDirectory()) return
      return attempt(() => [...new Set(found.places.flatMap((place) => readdirSync(place)))])
    },
    read(path, side, maxBytes) {
      const found = find(path, side)
      return found?.stat.isFile() ? attempt(() => readStart(found.places[0] ?? '', Math.min(maxBytes, found.stat.size))) : undefined
    },
  }
}

function last(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function look(path: string): Stats | undefined {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }))
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** The mark of an overlay for a name that was deleted. */
function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0
}

function kindOf(stat: Stats | undefined): EntryState['kind'] | undefined {
  if (stat === undefined) return
  if (stat.isFile()) return 'file'
  if (stat.isDirectory()) return 'folder'
  return stat.isSymbolicLink() ? 'link' : 'other'
}

function readStart(path: string, maxBytes: number): Uint8Array {
  using file = hold(path, flags.readHere)
  const bytes = new Uint8Array(maxBytes)
  let length = 0
  for (let count = -1; count !== 0 && length < maxBytes; length += count)
    count = readSync(file.fd, bytes, length, maxBytes - length, length)
  return bytes.slice(0, length)
}
