/** Opens the folders of one tree part by part without following links, and keeps the last ones open. */

import { chmodSync, fstatSync, mkdirSync, readlinkSync } from 'node:fs'
import { codeOf, flags, type Handle, hold, slot } from '../../descriptor.ts'
import { type Found, look } from './identity.ts'
import { folderOf, lastOf, type RawName, rawSlot } from './names.ts'

/** Handles that one tree keeps open; it evicts them only between two steps, because a step uses several. */
const MOST_OPEN = 100

export type Tree = Disposable & {
  readonly device: number
  /** Whom the top folder belongs to. */
  readonly owner: { readonly uid: number; readonly gid: number }
  /** @throws ENOENT, ENOTDIR, ELOOP or another error of the system; ESTALE when the folder is no longer where its name says */
  folder(raw: RawName): Handle
  /** Opens the folder and makes what is missing. @throws the system's error */
  madeFolder(raw: RawName): Handle
  /** @returns undefined when nothing is there, or when a folder above is missing or no folder @throws the system's error */
  look(raw: RawName): Found | undefined
  /** Closes handles when too many are open. */
  betweenSteps(): void
  /** Closes the handle of a folder that is gone. */
  forget(raw: RawName): void
}

type TreeOptions = {
  readonly root: string
  /** Called for a folder of ours that we may not search or write, before its mode is widened. */
  readonly onWiden?: (raw: RawName, mode: number) => void
  /** Leaves all modes alone. */
  readonly asItIs?: boolean
}

/** @throws the system's error when the root is no folder */
export function openTree({ root, onWiden, asItIs = false }: TreeOptions): Tree {
  const top = hold(root, flags.folder)
  const place = realOf(top)
  const open = new Map<RawName, Handle>()
  const mine = process.geteuid?.()

  function usable(raw: RawName, folder: Handle): Handle {
    const { uid, mode } = fstatSync(folder.fd)
    if (asItIs || uid !== mine || (mode & 0o700) === 0o700) return folder
    onWiden?.(raw, mode & 0o7777)
    chmodSync(slot(folder), (mode & 0o7777) | 0o700)
    return folder
  }

  function folder(raw: RawName): Handle {
    if (raw === '') return checked(raw, top)
    const known = open.get(raw)
    if (known !== undefined) return checked(raw, known)
    const handle = hold(rawSlot(folder(folderOf(raw)), lastOf(raw)), flags.childFolder)
    open.set(raw, usable(raw, handle))
    return handle
  }

  /** A folder that somebody moved away is held still, so its place is asked each time. */
  function checked(raw: RawName, handle: Handle): Handle {
    if (realOf(handle) === (raw === '' ? place : `${place === '/' ? '' : place}/${raw}`)) return handle
    throw Object.assign(new Error('the folder was moved or removed meanwhile'), { code: 'ESTALE' })
  }

  function madeFolder(raw: RawName): Handle {
    try {
      return folder(raw)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || raw === '') throw error
      mkdirSync(rawSlot(madeFolder(folderOf(raw)), lastOf(raw)), 0o700)
      return folder(raw)
    }
  }

  function close(): void {
    for (const handle of open.values()) handle[Symbol.dispose]()
    open.clear()
  }

  usable('', top)
  const stat = fstatSync(top.fd)
  return {
    device: stat.dev,
    owner: { uid: stat.uid, gid: stat.gid },
    folder,
    madeFolder,
    look(raw) {
      try {
        return look(folder(folderOf(raw)), lastOf(raw))
      } catch (error) {
        if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error))) return undefined
        throw error
      }
    },
    betweenSteps() {
      if (open.size > MOST_OPEN) close()
    },
    forget(raw) {
      open.get(raw)?.[Symbol.dispose]()
      open.delete(raw)
    },
    [Symbol.dispose]() {
      close()
      top[Symbol.dispose]()
    },
  }
}

function realOf(handle: Handle): RawName {
  return readlinkSync(slot(handle), { encoding: 'buffer' }).toString('latin1')
}
