/** Turns a change set into the differences of its files: text by lines, binary files by size, and renamed files as such. */

import { attempt } from '../../kit/errors.ts'
import { count } from '../../kit/text.ts'
import type { Change, ChangeSet, EntryState, GitShown } from '../../runtime/changes.ts'
import { diffTexts, type TextDiff } from './hunks.ts'

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

function differenceOf(from: Change, to: Change, read: ReadSide): Difference {
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
  return attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
}

const none = new Uint8Array()
const encoder = new TextEncoder()

type Rename = { readonly from: Change; readonly to: Change; readonly similarity: number }

type ReadSide = (change: Change, side: 'before' | 'after') => Uint8Array | undefined

/** More pairs than this are not compared line by line. */
const mostPairs = 400
const leastSimilarity = 50

/**
 * Finds deleted and new files that are one renamed file: the same content, or half of the lines in common. `others` are all changes but the
 * deletions that belong to a rename, in the given order.
 */
function pairRenames(
  changes: readonly Change[],
  read: ReadSide,
): { readonly pairs: readonly Rename[]; readonly others: readonly Change[] } {
  const deleted = changes.filter(({ before, after }) => isContent(before) && !after)
  const created = changes.filter(({ before, after }) => !before && isContent(after))
  if (deleted.length === 0 || created.length === 0) return { pairs: [], others: changes }
  const same = sameContent(deleted, created)
  const gone = new Set(same.flatMap(({ from, to }) => [from, to]))
  const rest = similar(
    deleted.filter((change) => !gone.has(change)),
    created.filter((change) => !gone.has(change)),
    read,
  )
  const pairs = [...same, ...rest]
  const moved = new Set(pairs.map(({ from }) => from))
  return { pairs, others: changes.filter((change) => !moved.has(change)) }
}

/** An empty file equals every other empty file, so it is never a rename. */
function isContent(state: Change['before']): boolean {
  return state?.kind === 'file' && state.size !== 0
}

/** Files with the same digest; of several, those with the same name. */
function sameContent(deleted: readonly Change[], created: readonly Change[]): readonly Rename[] {
  const byDigest = new Map<string, Change[]>()
  for (const change of deleted) {
    const digest = change.before?.sha256
    if (digest !== undefined) byDigest.set(digest, [...(byDigest.get(digest) ?? []), change])
  }
  return created.flatMap((to) => {
    const candidates = byDigest.get(to.after?.sha256 ?? '') ?? []
    const from = candidates.find(({ path }) => nameOf(path) === nameOf(to.path)) ?? candidates[0]
    if (from === undefined) return []
    candidates.splice(candidates.indexOf(from), 1)
    return [{ from, to, similarity: 100 }]
  })
}

function similar(deleted: readonly Change[], created: readonly Change[], read: ReadSide): readonly Rename[] {
  if (deleted.length * created.length > mostPairs || created.length === 0) return []
  const old = deleted.map((change) => linesOf(read(change, 'before')))
  const now = created.map((change) => linesOf(read(change, 'after')))
  const ranked = deleted
    .flatMap((from, at) => created.map((to, newAt) => ({ from, to, similarity: similarity(old[at], now[newAt]) })))
    .filter((pair) => pair.similarity >= leastSimilarity)
    .sort((a, b) => b.similarity - a.similarity)
  const paired = new Set<Change>()
  return ranked.filter(({ from, to }) => {
    if (paired.has(from) || paired.has(to)) return false
    paired.add(from).add(to)
    return true
  })
}

/** Counts the bytes of equal lines. */
type Lines = { readonly size: number; readonly bytes: ReadonlyMap<string, number> }

function linesOf(content: Uint8Array | undefined): Lines | undefined {
  if (content === undefined || content.includes(0)) return undefined
  const bytes = new Map<string, number>()
  const text = Buffer.from(content.buffer, content.byteOffset, content.length).toString('latin1')
  for (const line of text.split(/(?<=\n)/)) bytes.set(line, (bytes.get(line) ?? 0) + line.length)
  return { size: content.length, bytes }
}

/** The share of the longer file that both have, in percent; less than 100, because equal files have equal digests. */
function similarity(old: Lines | undefined, now: Lines | undefined): number {
  if (!old || !now) return 0
  let common = 0
  for (const [line, size] of old.bytes) common += Math.min(size, now.bytes.get(line) ?? 0)
  return Math.min(99, Math.floor((common * 100) / Math.max(old.size, now.size)))
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
