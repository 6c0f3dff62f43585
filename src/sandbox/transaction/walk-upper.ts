/** Compares the upper layer of an overlay with the workspace below it, without reading what the files contain. */

import type { Stats } from 'node:fs'
import { isCacheName } from '../../security/changes/cache-names.ts'
import type { Libc } from '../libc.ts'
import { createAttributes, lookAt, type Pause, pieces, widen } from './layer-files.ts'

/** `path` is relative to the workspace, with one character per byte. */
export type Difference = { readonly path: string; readonly before?: Stats; readonly after?: Stats }

export type Walked = {
  /** A folder comes before what is in it. A file that the overlay copied is listed even if nobody changed it. */
  readonly differences: readonly Difference[]
  /** Cache folders that the command wrote to or removed; they are not among the differences. */
  readonly caches: readonly string[]
}

/** Both are absolute, with one character per byte. */
export type Layers = { readonly up: string; readonly lower: string }

/** `hasCaches`: folders with the names of caches are caches. */
type Walking = Layers & { readonly libc: Libc; readonly most: number; readonly hasCaches?: boolean; readonly pause: Pause }

/** Tells how the layers below appear in a folder: their content shows through, is hidden by the folder, or does not exist. */
type Below = 'seen' | 'hidden' | 'nothing'

export class TooManyChanges extends Error {}

/** @throws TooManyChanges; Error when a folder cannot be read */
export async function walkUpper({ up, lower, libc, most, hasCaches = true, pause }: Walking): Promise<Walked> {
  const differences: Difference[] = []
  const caches: string[] = []
  const attributes = createAttributes(libc)
  const add = (difference: Difference) => {
    if (differences.push(difference) > most) throw new TooManyChanges(`it made more than ${most} changes`)
  }

  async function list(folder: string): Promise<string[]> {
    const names: string[] = []
    for (const piece of pieces(libc, folder)) {
      names.push(...piece)
      if (names.length > most) throw new TooManyChanges(`it made more than ${most} changes`)
      await pause()
    }
    return names.sort()
  }

  /** Lists what is below a folder that the command removed. */
  async function removed(path: string, before: Stats): Promise<void> {
    add({ path, before })
    if (before.isDirectory()) await removedIn(path, new Set(), false)
  }

  async function removedIn(path: string, still: ReadonlySet<string>, keepCaches: boolean): Promise<void> {
    const names = await list(join(lower, path))
    for (const name of names) {
      const [at, before] = [join(path, name), lookAt(join(lower, path, name))]
      if (before === undefined || still.has(name)) continue
      if (keepCaches && before.isDirectory() && isCache(path, name)) continue
      await removed(at, before)
      await pause()
    }
  }

  function isCache(path: string, name: string): boolean {
    const has = (sibling: string) => {
      const own = lookAt(join(up, path, sibling))
      return own === undefined ? lookAt(join(lower, path, sibling)) !== undefined : !isWhiteout(own)
    }
    return hasCaches && isCacheName(name, path.slice(path.lastIndexOf('/') + 1), has)
  }

  async function changedIn(path: string, below: Below): Promise<void> {
    const names = await list(join(up, path))
    for (const name of names) {
      await pause()
      const after = lookAt(join(up, path, name))
      if (after !== undefined) await changed({ path, name, after, below })
    }
    if (below === 'hidden') await removedIn(path, new Set(names), true)
  }

  type Changed = { readonly path: string; readonly name: string; readonly after: Stats; readonly below: Below }

  async function changed({ path, name, after, below }: Changed): Promise<void> {
    const at = join(path, name)
    const before = below === 'nothing' ? undefined : lookAt(join(lower, at))
    const isRemoved = isWhiteout(after)
    if ((isRemoved || after.isDirectory()) && (before?.isDirectory() ?? true) && isCache(path, name)) {
      caches.push(at)
      return
    }
    if (isRemoved) {
      if (before !== undefined) await removed(at, before)
      return
    }
    attributes.strip(join(up, at))
    add({ path: at, before, after })
    if (after.isDirectory()) {
      // A command may take all permissions from its folder; the list of changes keeps the mode that it set.
      widen(join(up, at), after, 0o700)
      await changedIn(at, belowOf(at, before, below))
    } else if (before?.isDirectory()) await removedIn(at, new Set(), false)
  }

  function belowOf(path: string, before: Stats | undefined, below: Below): Below {
    if (!before?.isDirectory()) return 'nothing'
    return below === 'hidden' || attributes.isOpaque(join(up, path)) ? 'hidden' : 'seen'
  }

  await changedIn('', 'seen')
  return { differences, caches }
}

export function join(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('/')
}

/** An overlay records a removed name as a character device with the number 0. */
export function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0
}
