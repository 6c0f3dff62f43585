/** Finds text files below a folder by name, and reads them bounded and never out of the folder, with what Node has. */

import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import { errorText, hasCode } from '../kit/errors.ts'

/** `size` is that of the whole file in bytes; `more`: it goes on after the text, which has U+FFFD for bytes that are not UTF-8. */
type TextRead = { readonly ok: true; readonly text: string; readonly size: number; readonly more: boolean }

/** Reads files below one folder; `path` is relative to it. The host's workspace is one, with the rules of the gate. Never throws. */
export type TextFiles = {
  readText(path: string, options: { readonly maxBytes: number }): TextRead | { readonly ok: false; readonly message: string }
}

export function openTextFiles(folder: string): TextFiles {
  return {
    readText(path, { maxBytes }) {
      try {
        return readInside(folder, path, maxBytes)
      } catch (error) {
        const why = hasCode(error, 'ENOENT') ? 'it does not exist' : errorText(error)
        return { ok: false, message: `${JSON.stringify(path)} is not read: ${why}` }
      }
    },
  }
}

function readInside(folder: string, path: string, maxBytes: number): TextRead {
  const real = realpathSync(join(folder, path))
  if (!isInside(realpathSync(folder), real)) throw new Error('it leads out of the folder')
  const file = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw new Error('it is not a regular file')
    const bytes = new Uint8Array(Math.min(stat.size, maxBytes))
    const length = readSync(file, bytes)
    const more = stat.size > length
    const text = new TextDecoder().decode(bytes.subarray(0, length), { stream: more })
    if (text.includes('\0')) throw new Error('it is not text')
    return { ok: true, text, size: stat.size, more }
  } finally {
    closeSync(file)
  }
}

/** Compares whole names: /a/bc is not inside /a/b. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return !/^\.\.([/\\]|$)/.test(way) && !isAbsolute(way)
}

/**
 * In each folder the first of `names` is found, or with `ending` every file whose name ends so; below it nothing is looked for if `isLeaf`.
 * Links are followed only to folders in `within`.
 */
type Finding = Readonly<{ names?: readonly string[]; ending?: string; within?: string | undefined; isLeaf?: boolean }>

const [maxDepth, maxFolders] = [6, 2_000]

/** Returns paths from the root, upper folders first, at most 6 folders deep and of 2,000 folders; names what it leaves out. */
export function findFiles(root: string, { names = [], ending, within, isLeaf = false }: Finding) {
  const [found, notices, seen]: [string[], string[], Set<string>] = [[], [], new Set()]
  const queue = ['']
  for (const path of queue) {
    const folder = folderAt(join(root, path))
    if (folder === undefined || seen.has(folder.real)) continue
    if (within !== undefined && !isInside(realpathSync(within), folder.real)) {
      notices.push(`${join(root, path)} is not searched: it leads out of ${within}`)
      continue
    }
    if (seen.size >= maxFolders)
      return { found, notices: [...notices, `${root} has more than ${maxFolders} folders; the rest is not searched`] }
    seen.add(folder.real)
    const files = folder.entries.flatMap((entry) => (entry.isDirectory() ? [] : [entry.name]))
    const first = names.filter((one) => files.includes(one)).slice(0, 1)
    const here = ending === undefined ? first : files.filter((name) => name.endsWith(ending))
    found.push(...here.map((name) => path + name))
    if ((here.length > 0 && isLeaf) || path.split('/').length > maxDepth) continue
    const inner = folder.entries.filter((entry) => !entry.isFile() && !/^(\.git|node_modules)$/.test(entry.name))
    queue.push(...inner.map((entry) => `${path}${entry.name}/`))
  }
  return { found, notices }
}

/** Returns nothing for what is not a folder, is missing or may not be read. */
function folderAt(path: string) {
  try {
    const real = realpathSync(path)
    return { real, entries: readdirSync(real, { withFileTypes: true }).sort((a, z) => (a.name < z.name ? -1 : 1)) }
  } catch {
    return undefined
  }
}
