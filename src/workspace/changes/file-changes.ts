/** Keeps what the file tools replace or delete as change sets, so that it can be undone like the changes of a command. */

import { copyFileSync, linkSync, lstatSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { hasCode } from '../../kit/errors.ts'
import type { Change } from '../../runtime/changes.ts'
import type { ComingWrite, NamedPath } from '../contract.ts'
import type { About } from './contract.ts'
import { type Item, planText } from './set/plan.ts'
import {
  type EntryStat,
  folderOf,
  identityOf,
  isSame,
  lastOf,
  linkBytes,
  lstat,
  namesOf,
  type RawName,
  rawName,
  rawSlot,
} from './tree/entry.ts'
import { createPace, openTree } from './tree/tree.ts'

type KeepRequest = { readonly store: string; readonly workspace: string; readonly about: About; readonly write: ComingWrite }

/**
 * Records a write right before its rename as an applied change set. If the process dies before the rename, the set records a write that did
 * not happen; undoing it then changes nothing.
 * @returns how to remove the record
 * @throws the system's error
 */
export function keepOriginal({ store, workspace, about, write }: KeepRequest): { forget(): void } {
  const path = relative(workspace, write.real)
  if (path === '' || path.startsWith('../')) return { forget() {} }
  const set = join(store, newId('file', about))
  mkdirSync(set, { recursive: true, mode: 0o700 })
  const forget = () => rmSync(set, { recursive: true, force: true })
  try {
    const original = write.replaces ? keptIn(join(set, 'undo'), write, rawName({ path })) : undefined
    const items = itemsOf(write, { path, workspace, original })
    const counts = { items: items.length, count: items.length, changed: items.length, bytes: original?.size ?? 0, undoable: [] }
    writeFileSync(join(set, 'done-1'), planText({ header: { workspace, about, ...counts }, items }), { mode: 0o600 })
    return { forget }
  } catch (error) {
    forget()
    throw error
  }
}

/** Ids begin with what made them, and sort by time. */
function newId(kind: string, { at }: About): string {
  return `${kind}-${at.toString(36)}-${crypto.randomUUID().slice(0, 8)}`
}

/** @throws when somebody replaced the file at the last moment, or the system's error */
function keptIn(undo: string, { folder, name }: ComingWrite, raw: RawName): EntryStat {
  const before = lstat(folder, rawName({ path: name }))
  mkdirSync(Buffer.from(join(undo, folderOf(raw)), 'latin1'), { recursive: true, mode: 0o700 })
  const backup = Buffer.from(join(undo, raw), 'latin1')
  const from = rawSlot(folder, rawName({ path: name }))
  try {
    linkSync(from, backup)
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error
    copyFileSync(from, backup)
    const { atime, mtime } = lstatSync(from)
    utimesSync(backup, atime, mtime)
  }
  const now = lstat(folder, rawName({ path: name }))
  if (before === undefined || now === undefined || !isSame(before, now)) throw new Error('somebody replaced it meanwhile; try again')
  return now
}

type WrittenFile = { readonly path: string; readonly workspace: string; readonly original: EntryStat | undefined }

function itemsOf({ folder, temporary, sha256, madeFolders }: ComingWrite, { path, workspace, original }: WrittenFile): Item[] {
  const made = madeFolders.map(
    (folder): Item => ({ path: relative(workspace, folder), after: { kind: 'folder', mode: lstatSync(folder).mode & 0o7777 } }),
  )
  const source = lstat(folder, rawName({ path: temporary }))
  if (source === undefined) throw new Error('the new content does not exist any more')
  const file: Item = {
    path,
    ...(original && { before: stateOf(original), base: identityOf(original) }),
    after: { kind: 'file', mode: source.mode, size: source.size, sha256 },
    source: identityOf(source),
  }
  return [...made, file]
}

function stateOf({ kind, mode, size }: EntryStat) {
  return { kind, mode, ...(kind === 'file' && { size }) }
}

export type Deletion = { readonly id: string; readonly changes: readonly Change[] }

/** Prepares a change set that deletes these paths as they are now. @throws the system's error */
export async function planDeletion({
  store,
  workspace,
  about,
  paths,
}: Omit<KeepRequest, 'write'> & { readonly paths: readonly NamedPath[] }): Promise<Deletion> {
  using tree = openTree({ root: workspace, asItIs: true })
  const id = newId('delete', about)
  const changes: Change[] = []
  const pace = createPace()
  for (const raw of paths.map((named) => rawName(typeof named === 'string' ? { path: named } : named))) {
    const found = tree.lstat(raw)
    if (found === undefined)
      throw new Error(`${JSON.stringify(namesOf(raw).path)} does not exist any more, or its name is not UTF-8; use the shell`)
    const target = found.kind === 'link' ? { target: linkBytes(tree.folder(folderOf(raw)), lastOf(raw)).toString() } : {}
    changes.push({ ...namesOf(raw), before: { ...stateOf(found), ...target } })
    tree.betweenSteps()
    await pace()
  }
  mkdirSync(join(store, id), { recursive: true, mode: 0o700 })
  writeFileSync(join(store, id, 'start'), '', { mode: 0o600 })
  return { id, changes }
}
