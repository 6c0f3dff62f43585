/** Keeps photos as files below TMP_DIR, in telegram/photos/CHAT, and only as many as are wanted. Linux only, as workspace/descriptor.ts. */

import { fstatSync, fsyncSync, lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, flags, type Handle, hold, slot } from '../../workspace/descriptor.ts'

export type PhotoFile = { readonly chat: string; readonly name: string; readonly bytes: Uint8Array }

export type Keep = { readonly most: number; readonly mostBytes: number }

export function photoPath(tmpDir: string, { chat, name }: Pick<PhotoFile, 'chat' | 'name'>): string {
  return join(tmpDir, 'telegram/photos', chat, name)
}

/** @throws Error that says why the photo was not saved */
export function savePhoto(tmpDir: string, { chat, name, bytes }: PhotoFile, keep: Keep): void {
  if (!/^-?\d{1,20}$/.test(chat) || !/^\d{1,20}\.(?:jpg|png|webp)$/.test(name)) throw new Error(`${chat}/${name} is no name of a photo`)
  mkdirSync(tmpDir, { recursive: true, mode: 0o700 })
  using tmp = hold(tmpDir, flags.folder)
  using own = ownFolder(tmp, 'telegram', tmpDir)
  using photos = ownFolder(own, 'photos', tmpDir)
  using folder = ownFolder(photos, chat, tmpDir)
  write(folder, name, bytes)
  prune(photos, keep)
}

/**
 * TMP_DIR may be shared, and may lie where a tool can write: each folder below it must be a real one, ours alone, and is held open, so that
 * no link leads a photo elsewhere. @throws Error
 */
function ownFolder(parent: Handle, name: string, tmpDir: string): Handle {
  try {
    mkdirSync(slot(parent, name), { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
  const folder = hold(slot(parent, name), flags.childFolder)
  const { uid, mode } = fstatSync(folder.fd)
  if (uid === process.getuid?.() && (mode & 0o022) === 0) return folder
  folder[Symbol.dispose]()
  throw new Error(`the folder "${name}" in ${tmpDir} belongs to somebody else, or others may write there; remove it`)
}

/** A photo is never there in part. */
function write(folder: Handle, name: string, bytes: Uint8Array): void {
  const draft = `.${crypto.randomUUID()}`
  try {
    {
      using file = hold(slot(folder, draft), flags.create, 0o600)
      for (let at = 0; at < bytes.length; ) at += writeSync(file.fd, bytes, at)
      fsyncSync(file.fd)
    }
    renameSync(slot(folder, draft), slot(folder, name))
  } catch (error) {
    rmSync(slot(folder, draft), { force: true })
    throw error
  }
}

/** Removes the oldest photos of all chats, and what a crash left behind. */
function prune(photos: Handle, { most, mostBytes }: Keep): void {
  const found = readdirSync(slot(photos)).flatMap((chat) => photosIn(photos, chat))
  const newest = found.toSorted((a, b) => b.at - a.at)
  let bytes = 0
  for (const [place, { chat, name, size }] of newest.entries()) {
    bytes += size
    const isKept = place === 0 || (place < most && bytes <= mostBytes)
    if (isKept) continue
    using folder = hold(slot(photos, chat), flags.childFolder)
    rmSync(slot(folder, name), { force: true })
  }
  for (const chat of new Set(found.map(({ chat: each }) => each))) removeEmpty(slot(photos, chat))
}

type Found = { readonly chat: string; readonly name: string; readonly size: number; readonly at: number }

function photosIn(photos: Handle, chat: string): Found[] {
  if (!/^-?\d+$/.test(chat)) return []
  try {
    using folder = hold(slot(photos, chat), flags.childFolder)
    return readdirSync(slot(folder)).flatMap((name) => {
      const stat = lstatSync(slot(folder, name), { throwIfNoEntry: false })
      return stat?.isFile() ? [{ chat, name, size: stat.size, at: stat.mtimeMs }] : []
    })
  } catch (error) {
    // A link or a file in place of the folder.
    if (['ENOTDIR', 'ELOOP', 'ENOENT'].includes(codeOf(error))) return []
    throw error
  }
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // It has photos.
  }
}
