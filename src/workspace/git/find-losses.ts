/** Finds history that nothing holds any more after a change set: moved and deleted references, expired logs, deleted objects. */

import { inFolder, pathIn, placeOf } from '../../security/changes/change-view.ts'
import { namesOf } from '../changes/tree/entry.ts'
import type { Repository } from './changed-repository.ts'
import { isNew, isOld, walk } from './read-history.ts'
import { GitLimit, objectId, openObjects } from './read-objects.ts'

/** Git itself removes commits that only a log holds after this time. */
const logMs = 30 * 86_400_000
const mostFileBytes = 64 * 1024 ** 2
const mostPacked = 500_000

/** A reason, see RepositoryMoves. */
export const neededObjects = 'objects are deleted that its history needs'

/** @param sides which sides reach each commit that was met */
export function findLosses(repository: Repository, sides: ReadonlyMap<string, number>): void {
  const { own, rest, doubts, text, refs, wasThere } = repository
  if (!wasThere) return
  const logs = own.flatMap(({ path }) => (rest(path).startsWith('logs/') ? [path] : []))
  for (const reason of [...lostByRefs(repository, sides), ...lostByLogs(repository, logs)]) doubts.add(reason)
  const left = [...refs.after.values(), ...logs.flatMap((path) => idsInLog(text(path, 'after')))]
  for (const reason of lostObjects(repository, left)) doubts.add(reason)
}

/** A commit that only a log holds can be restored, but after a deleted branch a person would not search there. */
function lostByRefs(repository: Repository, sides: ReadonlyMap<string, number>): readonly string[] {
  const { moved, isTracked, history, text, folder, common } = repository
  return moved.flatMap(({ name, from, to }) => {
    const isReached = from === undefined || (sides.get(history.commit(from)?.id ?? '') ?? isOld) !== isOld
    if (isReached || isTracked(name) || /^refs\/(?:rewritten|bisect|worktree)\//.test(name)) return []
    const isForced = to !== undefined || name === 'HEAD'
    const logs = [inFolder(folder, 'logs/HEAD'), inFolder(common, `logs/${name}`)]
    if (isForced && logs.some((log) => idsInLog(text(log, 'after')).includes(from))) return []
    if (name === 'refs/stash' && isUnpacked(repository, from)) return []
    const what = isForced ? `${name} moves away from` : `${name} is deleted, and with it`
    return [`${what} ${from.slice(0, 7)}, which nothing holds any more`]
  })
}

function lostByLogs(repository: Repository, logs: readonly string[]): readonly string[] {
  const { text, history, refs, isCutOff } = repository
  const held = new Set(logs.flatMap((path) => idsInLog(text(path, 'after'))))
  const dropped = logs.flatMap((path) => {
    const present = new Set(text(path, 'after').split('\n'))
    const lines = text(path, 'before')
      .split('\n')
      .filter((line) => !present.has(line) && isRecent(line))
    return lines.flatMap((line) => {
      const found = line.slice(0, 130).match(/\b(?:[\da-f]{64}|[\da-f]{40})\b/g) ?? []
      return found.filter((id) => !held.has(id) && !/^0+$/.test(id)).map((id) => ({ id, isStash: path.endsWith('logs/refs/stash') }))
    })
  })
  if (dropped.length === 0) return []
  const starts = new Map<string, number>(dropped.map(({ id }) => [id, isOld]))
  for (const id of [...refs.after.values(), ...held]) if (history.commit(id)) starts.set(id, (starts.get(id) ?? 0) | isNew)
  const { sides } = walk(history, starts, isCutOff)
  const lost = dropped.filter(({ id, isStash }) => sides.get(id) === isOld && !(isStash && isUnpacked(repository, id)))
  const named = [...new Set(lost.map(({ id }) => id.slice(0, 7)))]
  const more = named.length > 5 ? ' and more' : ''
  return named.length === 0 ? [] : [`its logs forget ${named.slice(0, 5).join(', ')}${more}, which nothing else holds`]
}

function isRecent(line: string): boolean {
  return Date.now() - Number(/> (\d+) [+-]\d{4}/.exec(line)?.[1] ?? 0) * 1_000 < logMs
}

/** Returns what the lines of a log hold for git: not what their messages name, nor what git forgets soon. */
function idsInLog(text: string): readonly string[] {
  const ids = text.split('\n').flatMap((line) => (isRecent(line) ? (/^([\da-f]{40,64}) ([\da-f]{40,64}) /.exec(line)?.slice(1) ?? []) : []))
  return ids.filter((id) => !/^0+$/.test(id))
}

/** Tells whether the work tree has all that a stash held, because it was taken out again. */
function isUnpacked({ workspace, history, root, view }: Repository, id: string): boolean {
  const commit = history.commit(id)
  const [base, , untracked] = (commit?.parents ?? []).map((parent) => history.commit(parent)?.tree)
  if (commit === undefined || root === undefined) return false
  const held = [...history.differences(base, commit.tree), ...(untracked ? history.differences(undefined, untracked) : [])]
  return held.every(({ name, after }) => {
    const path = pathIn(workspace, inFolder(root, namesOf(name).path))
    const content = view.start(path, 'after', mostFileBytes)
    if (after === undefined || content === undefined) return after === undefined && view.kind(path, 'after') === undefined
    return objectId({ type: 'blob', content: Buffer.from(content) }, after.id.length) === after.id
  })
}

/** Objects that git packed, or that no history needs, may go. @param starts what must stay reachable */
function lostObjects({ own, rest, workspace, places, history }: Repository, starts: readonly string[]): readonly string[] {
  const deleted = own.filter(({ path, before, after }) => before?.kind === 'file' && !after && rest(path).startsWith('objects/'))
  if (deleted.length === 0) return []
  const deletedPaths = new Set(deleted.map(({ path }) => placeOf(workspace, path)))
  using old = openObjects(places, (path) => deletedPaths.has(path))
  using left = openObjects(places, (path) => !deletedPaths.has(path))
  const packed = old.packed(mostPacked)
  if (packed === undefined) return ['so many packed objects are deleted that it was not read whether its history needs them']
  const loose = [...deletedPaths].flatMap((path) => /objects\/([\da-f]{2})\/([\da-f]{38,62})$/.exec(path)?.slice(1).join('') ?? [])
  const missing = new Set([...loose, ...packed].filter((id) => !left.has(id)))
  try {
    return missing.size > 0 && history.needs(starts, missing) ? [neededObjects] : []
  } catch (error) {
    if (error instanceof GitLimit) return ['objects are deleted, and its history is too large to read whether it needs them']
    throw error
  }
}
