/** Finds deleted and new files that are one renamed file: the same content, or half of the lines in common. */

import type { Change } from '../../runtime/changes.ts'

export type Rename = { readonly from: Change; readonly to: Change; readonly similarity: number }

type Read = (change: Change, side: 'before' | 'after') => Uint8Array | undefined

/** More pairs than this are not compared line by line. */
const mostPairs = 400
const leastSimilarity = 50

/** `others` are all changes but the deletions that belong to a rename, in the given order. */
export function pairRenames(
  changes: readonly Change[],
  read: Read,
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

function similar(deleted: readonly Change[], created: readonly Change[], read: Read): readonly Rename[] {
  if (deleted.length * created.length > mostPairs || created.length === 0) return []
  const old = deleted.map((change) => linesOf(read(change, 'before')))
  const now = created.map((change) => linesOf(read(change, 'after')))
  const ranked = deleted
    .flatMap((from, at) => created.map((to, newAt) => ({ from, to, similarity: similarity(old[at], now[newAt]) })))
    .filter((pair) => pair.similarity >= leastSimilarity)
    .sort((a, b) => b.similarity - a.similarity)
  const taken = new Set<Change>()
  return ranked.filter(({ from, to }) => {
    if (taken.has(from) || taken.has(to)) return false
    taken.add(from).add(to)
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
