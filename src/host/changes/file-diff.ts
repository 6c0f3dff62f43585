/** Turns a change set into the differences of its files: text by lines, binary files by size, and renamed files as such. */

import { count } from '../../kit/count.ts'
import type { Change, ChangeSet, EntryState, GitShown } from '../../runtime/changes.ts'
import { diffTexts, type TextDiff } from './hunks.ts'
import { pairRenames } from './renames.ts'

/** `unseen`: the content is not kept any more, or too long to compare. `none`: only folders, permissions or names differ. */
export type Difference = { readonly type: 'text'; readonly diff: TextDiff } | { readonly type: 'binary' | 'unseen' | 'none' }

/** A path without `before` is new, one without `after` is deleted; `from` is the earlier path of a renamed file. */
export type FileDiff = {
  readonly path: string
  readonly before?: EntryState
  readonly after?: EntryState
  readonly from?: string
  /** How much of a renamed file stayed the same, in percent. */
  readonly similarity?: number
  readonly difference: Difference
  /** The changes behind it: two for a renamed file. */
  readonly changes: readonly Change[]
}

/** Content beyond these limits is not compared, so that a question about 30,000 files appears at once. */
export type CompareLimits = { readonly fileBytes: number; readonly allBytes: number }

export const usualLimits: CompareLimits = { fileBytes: 1024 * 1024, allBytes: 16 * 1024 * 1024 }

/** @returns a line for each thing that moves in a repository, and the set without git's own files */
export function withoutGit(set: ChangeSet): { readonly parts: ReturnType<GitShown['parts']>; readonly others: ChangeSet } {
  const { git, changes } = set
  if (git === undefined) return { parts: [], others: set }
  const kept = changes.filter(({ path }) => !git.isOwn(path))
  const own = changes.length - kept.length
  const parts = own > 0 ? git.parts() : []
  return {
    parts: own > 0 && parts.length === 0 ? [{ title: `${count(own, 'path')} of git's own` }] : parts,
    others: { ...set, changes: kept },
  }
}

/** @returns the files of a new commit, and which of them the other changes of the set do not show already */
export function commitDiffs(set: ChangeSet | undefined, others: readonly FileDiff[], limits?: CompareLimits) {
  const all = set ? fileDiffs(set, limits) : []
  const keyOf = ({ path, difference }: FileDiff) => JSON.stringify([path, difference])
  const shown = new Set(others.map(keyOf))
  return { all, isShown: (diff: FileDiff) => shown.has(keyOf(diff)) }
}

export function fileDiffs(set: ChangeSet, limits: CompareLimits = usualLimits): readonly FileDiff[] {
  const state = { left: limits.allBytes }
  const read = (change: Change, side: 'before' | 'after') => {
    const entry = change[side]
    if (entry?.kind === 'link') return encoder.encode(entry.target ?? '')
    if (entry?.kind !== 'file' || (entry.size ?? 0) > Math.min(limits.fileBytes, state.left)) return undefined
    const bytes = set.content(change, side, Math.min(limits.fileBytes, state.left))
    state.left -= bytes?.length ?? 0
    return bytes
  }
  const whole = set.changes.flatMap(withoutTypeChange)
  const { pairs, others } = pairRenames(whole, read)
  const renamed = new Map(pairs.map((pair) => [pair.to, pair]))
  return others.map((change) => {
    const pair = renamed.get(change)
    const from = pair?.from ?? change
    return {
      path: change.path,
      ...(from.before ? { before: from.before } : {}),
      ...(change.after ? { after: change.after } : {}),
      ...(pair ? { from: pair.from.path, similarity: pair.similarity } : {}),
      difference: differenceOf(from, change, read),
      changes: pair ? [pair.from, change] : [change],
    }
  })
}

/** A file that became a link or a folder is shown as deleted and new, as git does. */
function withoutTypeChange(change: Change): readonly Change[] {
  const { before, after, ...named } = change
  if (!before || !after || before.kind === after.kind) return [change]
  return [
    { ...named, before },
    { ...named, after },
  ]
}

type Read = (change: Change, side: 'before' | 'after') => Uint8Array | undefined

function differenceOf(from: Change, to: Change, read: Read): Difference {
  const { before } = from
  const { after } = to
  if (![before, after].some((side) => side?.kind === 'file' || side?.kind === 'link')) return { type: 'none' }
  if (before && after && isSame(before, after)) return { type: 'none' }
  const [old, now] = [before ? read(from, 'before') : none, after ? read(to, 'after') : none]
  if (old === undefined || now === undefined) return { type: 'unseen' }
  const [text, newText] = [textOf(old), textOf(now)]
  if (text === undefined || newText === undefined) return { type: 'binary' }
  return text === newText ? { type: 'none' } : { type: 'text', diff: diffTexts(text, newText) }
}

function isSame(before: EntryState, after: EntryState): boolean {
  if (before.kind === 'link') return before.target === after.target
  return before.sha256 !== undefined && before.sha256 === after.sha256
}

/** Returns undefined for content that is not text: it has a NUL byte or is not valid UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const none = new Uint8Array()
const encoder = new TextEncoder()
