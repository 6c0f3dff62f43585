/** Keeps what the file tools replace or delete as change sets, so that they are undone like what a command changed. */

import { copyFileSync, linkSync, lstatSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Change } from '../../runtime/changes.ts'
import type { ComingWrite, NamedPath } from '../contract.ts'
import { codeOf } from '../descriptor.ts'
import type { About } from './contract.ts'
import { type Item, planText } from './set/plan.ts'
import { type Found, folderOf, identityOf, isSame, lastOf, linkBytes, look, namesOf, type RawName, rawName, rawSlot } from './tree/entry.ts'
import { createPace, openTree } from './tree/tree.ts'

type Keeping = { readonly store: string; readonly workspace: string; readonly about: About; readonly write: ComingWrite }

/**
 * Records a write right before its rename as a change set that is applied. If the process dies before the rename, the set says that a
 * write happened that did not; undoing it then finds everything as it was.
 * @returns how to forget it @throws the system's error
 */
export function keepOriginal({ store, workspace, about, write }: Keeping): { forget(): void } {
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
function keptIn(undo: string, { folder, name }: ComingWrite, raw: RawName): Found {
  const before = look(folder, rawName({ path: name }))
  mkdirSync(Buffer.from(join(undo, folderOf(raw)), 'latin1'), { recursive: true, mode: 0o700 })
  const kept = Buffer.from(join(undo, raw), 'latin1')
  const from = rawSlot(folder, rawName({ path: name }))
  try {
    linkSync(from, kept)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error
    copyFileSync(from, kept)
    const { atime, mtime } = lstatSync(from)
    utimesSync(kept, atime, mtime)
  }
  const now = look(folder, rawName({ path: name }))
  if (before === undefined || now === undefined || !isSame(before, now)) throw new Error('somebody replaced it meanwhile; try again')
  return now
}

type Written = { readonly path: string; readonly workspace: string; readonly original: Found | undefined }

function itemsOf({ folder, temporary, sha256, madeFolders }: ComingWrite, { path, workspace, original }: Written): Item[] {
  const made = madeFolders.map(
    (folder): Item => ({ path: relative(workspace, folder), after: { kind: 'folder', mode: lstatSync(folder).mode & 0o7777 } }),
  )
  const source = look(folder, rawName({ path: temporary }))
  if (source === undefined) throw new Error('the new content is gone')
  const file: Item = {
    path,
    ...(original && { before: stateOf(original), base: identityOf(original) }),
    after: { kind: 'file', mode: source.mode, size: source.size, sha256 },
    source: identityOf(source),
  }
  return [...made, file]
}

function stateOf({ kind, mode, size }: Found) {
  return { kind, mode, ...(kind === 'file' && { size }) }
}

export type Deletion = { readonly id: string; readonly changes: readonly Change[] }

/** Prepares a change set that deletes these paths as they are now. @throws the system's error */
export async function planDeletion({
  store,
  workspace,
  about,
  paths,
}: Omit<Keeping, 'write'> & { readonly paths: readonly NamedPath[] }): Promise<Deletion> {
  using tree = openTree({ root: workspace, asItIs: true })
  const id = newId('delete', about)
  const changes: Change[] = []
  const pace = createPace()
  for (const raw of paths.map((named) => rawName(typeof named === 'string' ? { path: named } : named))) {
    const found = tree.look(raw)
    if (found === undefined) throw new Error(`${JSON.stringify(namesOf(raw).path)} is gone, or its name is not UTF-8; use the shell`)
    const target = found.kind === 'link' ? { target: linkBytes(tree.folder(folderOf(raw)), lastOf(raw)).toString() } : {}
    changes.push({ ...namesOf(raw), before: { ...stateOf(found), ...target } })
    tree.betweenSteps()
    await pace()
  }
  mkdirSync(join(store, id), { recursive: true, mode: 0o700 })
  writeFileSync(join(store, id, 'start'), '', { mode: 0o600 })
  return { id, changes }
}
