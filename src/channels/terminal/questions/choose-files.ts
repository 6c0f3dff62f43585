/** Lets the person choose which files of a change set are applied: units that only make sense as a whole are chosen as a whole. */

import { headline } from '../../../host/changes/change-lines.ts'
import { type FileDiff, fileDiffs } from '../../../host/changes/file-diff.ts'
import { count } from '../../../kit/count.ts'
import { visible } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import type { AskPerson } from './approval-prompt.ts'

export type Choice = { readonly set: ChangeSet; readonly ask: AskPerson; readonly signal: AbortSignal }

/** What is chosen together. */
type Unit = { readonly label: string; readonly paths: readonly string[] }

/** @returns the chosen paths; undefined when the person went back */
export async function chooseFiles({ set, ask, signal }: Choice): Promise<readonly string[] | undefined> {
  const units = unitsOf(set)
  const list = units.map(({ label }, at) => `${String(at + 1).padStart(4)}  ${label}\n`).join('')
  let words = `${list}Which to apply? Numbers such as 1,3-5; Enter goes back: `
  for (;;) {
    const typed = await ask(words, signal)
    if (typed === undefined || typed.trim() === '') return undefined
    const numbers = readNumbers(typed, units.length)
    if (typeof numbers !== 'string') return withFolders(set, new Set(units.flatMap(({ paths }, at) => (numbers.has(at + 1) ? paths : []))))
    words = `${numbers}\nWhich to apply? `
  }
}

/** A renamed file is one unit, and so is a git directory: a part of it would be a damaged repository. */
function unitsOf(set: ChangeSet): readonly Unit[] {
  const units = new Map<string, FileDiff[]>()
  for (const diff of fileDiffs(set)) {
    const repository = gitDirectoryOf(diff.path)
    const key = repository ?? diff.path
    units.set(key, [...(units.get(key) ?? []), diff])
  }
  return [...units].map(([key, diffs]) => {
    const [only] = diffs
    const label =
      only && gitDirectoryOf(only.path) === undefined
        ? headline(only)
        : `git directory ${visible(key)} (${count(diffs.length, 'path')}, only as a whole)`
    return { label, paths: diffs.flatMap(({ changes }) => changes.map(({ path }) => path)) }
  })
}

/** Returns the path up to and including a `.git`, in any spelling that a case-insensitive file system takes for it. */
function gitDirectoryOf(path: string): string | undefined {
  const parts = path.split('/')
  const at = parts.findIndex((part) => part.normalize('NFC').toLowerCase() === '.git')
  return at < 0 ? undefined : parts.slice(0, at + 1).join('/')
}

/** Reads `1,3-5 8`. @returns a sentence when a part is not a number of the list */
export function readNumbers(text: string, most: number): ReadonlySet<number> | string {
  const numbers = new Set<number>()
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const [, from = '', to = from] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? []
    const [first, last] = [Number(from), Number(to)]
    if (from === '' || first < 1 || last > most || first > last)
      return `${visible(part)} is not on the list: numbers from 1 to ${most}, or 2-4`
    for (let number = first; number <= last; number++) numbers.add(number)
  }
  return numbers.size > 0 ? numbers : 'that is no number'
}

/** A chosen file needs its new folders; a deleted folder can only go when everything that was deleted in it is chosen. */
function withFolders({ changes }: ChangeSet, chosen: Set<string>): readonly string[] {
  const within = (path: string, folder: string) => path.startsWith(`${folder}/`)
  return changes
    .filter(({ path, before, after }) => {
      if (after?.kind === 'folder' && !before) return chosen.has(path) || [...chosen].some((each) => within(each, path))
      if (before?.kind !== 'folder' || after) return chosen.has(path)
      return chosen.has(path) && changes.every((other) => !within(other.path, path) || chosen.has(other.path))
    })
    .map(({ path }) => path)
}
