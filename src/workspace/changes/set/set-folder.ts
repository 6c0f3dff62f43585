/** Finds the folder of each change set, and tells from the files in it how far the set is. */

import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { codeOf } from '../../descriptor.ts'
import type { SetState, SetSummary } from '../contract.ts'
import { type RawName, rawName } from '../tree/names.ts'
import { removeTree } from '../tree/remove-tree.ts'
import { type Header, type Item, readHeader, readPlan } from './plan.ts'

const ID = /^[A-Za-z\d][\w.-]{0,127}$/
const GONE = '.gone-'

/** @throws when it is no id */
export function setFolder(store: string, id: string): string {
  if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} is no id of a change set`)
  return join(store, id)
}

/** A private view can be on another file system than the store; the store then has a link to it. @throws the system's error */
export function adopt(store: string, id: string, folder: string): string {
  const path = setFolder(store, id)
  if (folder === path || existsSync(path)) return path
  if (!isAbsolute(folder)) throw new Error(`${JSON.stringify(folder)} is no absolute path`)
  mkdirSync(store, { recursive: true, mode: 0o700 })
  symlinkSync(folder, path)
  return path
}

export function idsIn(store: string): string[] {
  return namesIn(store).filter((name) => ID.test(name))
}

/** Names of change sets whose removal was interrupted. */
export function goneIn(store: string): string[] {
  return namesIn(store).filter((name) => name.startsWith(GONE))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** @throws the system's error */
export async function removeSet(store: string, id: string): Promise<void> {
  const path = setFolder(store, id)
  const elsewhere = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined
  if (elsewhere !== undefined) await removeTree(elsewhere)
  const gone = join(store, `${GONE}${id}`)
  try {
    renameSync(path, gone)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  await removeTree(gone)
}

/** Names of the finished moves of a set, oldest first. */
export function finishedIn(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => /^done-\d+$/.test(name))
    .sort((a, b) => Number(a.slice(5)) - Number(b.slice(5)))
}

type Stage = { readonly state: SetState; readonly header: Header }

/** @returns undefined for a folder that holds no change set yet @throws when a file in it is damaged */
export function stageOf(folder: string): Stage | undefined {
  const unfinished = readHeader(join(folder, 'plan'))
  if (unfinished !== undefined) return { state: 'unfinished', header: unfinished }
  const stuck = readHeader(join(folder, 'stuck'))
  if (stuck !== undefined) return { state: 'stuck', header: stuck }
  const last = finishedIn(folder).at(-1)
  const done = last === undefined ? undefined : readHeader(join(folder, last))
  if (done !== undefined) return { state: stateOf(done), header: done }
  const pending = readHeader(join(folder, 'pending'))
  return pending === undefined ? undefined : { state: 'pending', header: pending }
}

function stateOf({ changed, count }: Header): SetState {
  if (changed === count) return 'applied'
  return changed === 0 ? 'undone' : 'partly undone'
}

export function summaryOf(id: string, { state, header }: Stage): SetSummary {
  const { about, workspace, count, bytes, review } = header
  return { id, state, about, workspace, count, bytes, ...(review && { review }) }
}

/** A path of a set, how it was changed first, and the last move that changed it. */
export type PathState = { readonly raw: RawName; readonly first: Item; readonly last: Item; readonly isChanged: boolean }

/** @throws when a file in the folder is damaged */
export function pathsOf(folder: string): PathState[] {
  const paths = new Map<RawName, PathState>()
  for (const name of finishedIn(folder)) {
    const { header, items } = readPlan(join(folder, name))
    for (const item of items) {
      const raw = rawName(item)
      paths.set(raw, { raw, first: paths.get(raw)?.first ?? item, last: item, isChanged: header.to === 'after' })
    }
  }
  return [...paths.values()]
}
