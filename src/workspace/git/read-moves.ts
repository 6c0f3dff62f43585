/**
 * Reads what a change set moves in the repositories of the workspace: the files that new commits, stashes and the index bring, and the
 * history that nothing holds any more. Only files are read; no git runs.
 */

import { errorText } from '../../kit/errors.ts'
import type { Change } from '../../runtime/changes.ts'
import { createChangeView, folderOf, inFolder, nameOf } from '../../security/changes/change-view.ts'
import { createGitFolders } from '../../security/changes/git/git-folders.ts'
import type { GitMoves, RepositoryMoves } from '../../security/changes/git-moves.ts'
import { createEntryJudge } from '../../security/changes/harmless/judge-moves.ts'
import { createPathLock } from '../../security/changes/locked-paths.ts'
import { plainGit } from '../../security/command/plain-git.ts'
import {
  commonOf,
  describeRepository,
  type MovesAsked,
  objectPlaces,
  type Repository,
  type RepositoryOpening,
  restOf,
} from './changed-repository.ts'
import { findLosses, neededObjects } from './find-losses.ts'
import { readBrought } from './read-brought.ts'
import { type GitHistory, isNew, isOld, walk } from './read-history.ts'
import { openObjects } from './read-objects.ts'

/** No repository changes without one of these names, so other change sets cost nothing. */
const touches = /(?:^|\/)(?:\.git|HEAD|refs|objects|commondir|packed-refs|index|logs|worktrees|reftable|[A-Z_]{4,})(?:\/|$)/

/** Never throws: what cannot be read is in the result. */
export function readMoves(request: MovesAsked): GitMoves {
  const { changes, context } = request
  if (!changes.some(({ path }) => touches.test(path))) return []
  const view = createChangeView(changes, context.look)
  const folders = createGitFolders(view)
  const byFolder = new Map<string, Change[]>()
  for (const change of changes) {
    const own = folders.above(folderOf(change.path))
    for (const folder of own) {
      // A worktree and a submodule are repositories of their own.
      const isInner = own.some((other) => other !== folder && /^(?:modules|worktrees)\//.test(restOf(other, folder)))
      const list = byFolder.get(folder) ?? []
      if (isInner) continue
      list.push(change)
      byFolder.set(folder, list)
    }
  }
  const judging = byFolder.size > 0 ? createEntryJudge(view, { ...context, lock: createPathLock(view, context) }) : undefined
  return [...byFolder].flatMap(([folder, own]): GitMoves => {
    if (judging === undefined || !folders.isComplete(folder, 'after')) return []
    const moves = read({ ...request, view, folder, own, wasThere: folders.isComplete(commonOf(view, folder), 'before'), judging })
    const { refs, commits, staged, refused, doubts, unread, stagedPaths, branch } = moves
    const isMoved =
      stagedPaths > 0 || branch !== undefined || [refs, commits, staged, refused, doubts, unread].some((each) => each.length > 0)
    return isMoved ? [moves] : []
  })
}

/** Finds the repositories that an undo would damage: later commits, also of other branches, use objects that it removes. Never throws. */
export function readDamage(request: MovesAsked): GitMoves {
  return readMoves(request).flatMap((moves) =>
    moves.doubts.includes(neededObjects)
      ? [{ ...moves, commits: [], staged: [], doubts: [], unread: [], refused: [`${neededObjects}; undo what was done later first`] }]
      : [],
  )
}

function read(opening: RepositoryOpening): RepositoryMoves {
  const places = objectPlaces({ ...opening, workspace: opening.context.policy.workspace }, opening.folder)
  using objects = openObjects(places)
  const repository = describeRepository(opening, places, objects)
  const { folder, root, moved, refused, doubts, unread, history } = repository
  const attempt = createAttempt(unread)
  const named = newlyNamed(repository, opening.isTransfer ?? false)
  const sides = attempt(() => walkAll(repository, named)) ?? { sides: new Map<string, number>(), whole: false }
  const brought = readBrought({ repository, named, ...sides, attempt })
  attempt(() => findReplaced(repository))
  if (!opening.isTransfer && !isMadeByGit(opening.context)) attempt(() => findLies(repository))
  attempt(() => findLosses(repository, sides.sides))
  const refs = moved.map((ref) => ({ ...ref, commits: attempt(() => reached(history, ref.to, sides.sides)) ?? [] }))
  const [was, branch] = (['before', 'after'] as const).map(
    (side) => /^ref: (\S+)/.exec(repository.text(inFolder(folder, 'HEAD'), side))?.[1],
  )
  const reasons = { refused: [...refused], doubts: [...doubts], unread: [...unread] }
  return { folder, root, branch: branch === was ? undefined : branch, refs, ...brought, ...reasons }
}

/** @returns a function that notes why something cannot be read, so that the reading continues */
function createAttempt(unread: Set<string>) {
  return <T>(use: () => T): T | undefined => {
    try {
      return use()
    } catch (error) {
      unread.add(errorText(error))
      return undefined
    }
  }
}

/** Matches files in which ids appear among other words. */
const lists = /^(?:logs\/.+|\w+_HEAD|rebase-merge\/(?:git-rebase-todo|done)|sequencer\/todo)$/
const shortIds = /^[ \t]*\w+ (?:-[cC] )?[\da-f]{4,39}(?:\s|$)/m

/**
 * @returns the ids that the repository names now and did not name before, each with where: git takes any file with an id for a reference
 */
function newlyNamed(
  { own, rest, view, text, ids, unread, moved, isTracked }: Repository,
  isTransfer: boolean,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { path } of own) {
    const name = rest(path)
    if (view.kind(path, 'after') !== 'file' || /^(?:objects|hooks|info)\/|^(?:index|packed-refs|config)$/.test(name)) continue
    if (isTransfer && /^(?:logs\/)?refs\/(?:remotes|tags)\/|^FETCH_HEAD$/.test(name)) continue
    if (!lists.test(name) && !/^(?:[\da-f]{40}|[\da-f]{64})(?:\s|$)/.test(text(path, 'after'))) continue
    if (name.endsWith('todo') && shortIds.test(text(path, 'after'))) unread.add(`${name} names commits by a part of their ids`)
    const old = ids(path, 'before')
    for (const id of ids(path, 'after')) if (!old.has(id)) found.set(id, name)
  }
  for (const { name, to } of moved) if (to && !isTracked(name)) found.set(to, name)
  return found
}

const mostStarts = 2_000

function walkAll({ history, refs, moved, isTracked, isCutOff }: Repository, named: ReadonlyMap<string, string>) {
  const starts = new Map<string, number>()
  const add = (id: string | undefined, side: number) => id && starts.set(id, (starts.get(id) ?? 0) | side)
  const resting = new Set([...refs.before].flatMap(([name, id]) => (refs.after.get(name) === id ? [id] : [])))
  const commits = [...named.keys()].filter((id) => history.type(id) === 'commit').slice(0, mostStarts)
  for (const id of commits) add(id, resting.has(id) ? isNew | isOld : isNew)
  for (const { name, from, to } of moved) {
    add(from, isOld)
    if (to && isTracked(name)) add(to, isNew | isOld)
  }
  const near = walk(history, starts, isCutOff)
  const all = [...near.sides]
  const isPlain = all.filter(([, side]) => side === isNew).length <= 1 && !all.some(([id, side]) => side === isOld && starts.has(id))
  if (near.whole && isPlain) return near
  // Branches that did not move may hold what seems to be new or lost.
  for (const id of [...resting].slice(0, mostStarts)) add(id, isNew | isOld)
  return walk(history, starts, isCutOff)
}

const mostNamed = 50

/** The new commits that a reference reaches, latest first. */
function reached(history: GitHistory, to: string | undefined, sides: ReadonlyMap<string, number>): readonly string[] {
  const first = to === undefined ? undefined : history.commit(to)?.id
  const found = new Set(first !== undefined && sides.get(first) === isNew ? [first] : [])
  for (const id of found)
    for (const parent of history.commit(id)?.parents ?? []) if (sides.get(parent) === isNew && found.size < mostNamed) found.add(parent)
  return [...found]
}

/** One plain git command, which no setting replaces, made the packs and the graph itself. */
function isMadeByGit({ command }: RepositoryOpening['context']): boolean {
  return /^(?:gc|repack|maintenance|clone)$/.test(plainGit(command) ?? '')
}

/** Finds what would make git show other objects than those that were read. */
function findReplaced({ moved, own, rest, unread }: Repository): void {
  if (moved.some(({ name, to }) => to && name.startsWith('refs/replace/')))
    unread.add('refs/replace shows other objects in the place of some')
  for (const { path, before, after } of own) {
    const name = rest(path)
    if (name === 'info/grafts' && after) unread.add('info/grafts gives commits other parents')
    if (/^reftable\//.test(name)) unread.add('its references have the format reftable, which is not read')
    const isObject = /^objects\/(?:[\da-f]{2}\/[\da-f]+|pack\/.+\.(?:pack|idx))$/.test(name)
    if (isObject && before?.kind === 'file' && after) unread.add(`the object file ${nameOf(name)} is another one than before`)
  }
}

const mostPacked = 10_000
const mostGraphBytes = 16 * 1024 ** 2
const noParent = 0x70000000

/**
 * Checks what git derives from objects and then believes: the indexes of packs, and the graph of commits. A pack whose index gives
 * another object's place would show other content under an id that every older tree names.
 */
function findLies({ own, rest, places, view, common, history, unread }: Repository): void {
  const made = own.flatMap(({ path, after }) => (after?.kind === 'file' ? [path] : []))
  const packs = made.filter((path) => /^objects\/pack\/[^/]+\.(?:idx|pack)$/.test(rest(path)))
  if (packs.length > 0) {
    using objects = openObjects(places, (path) => packs.some((pack) => path.endsWith(`/${rest(pack)}`)))
    const ids = objects.packed(mostPacked)
    if (ids === undefined) unread.add(`its new packs have more than ${mostPacked} objects, too many to be read`)
    if ([...(ids ?? [])].some((id) => objects.read(id) === undefined)) unread.add('a new pack holds other objects than its index says')
  }
  const graph = inFolder(common, 'objects/info/commit-graph')
  if (made.some((path) => /^objects\/(?:info\/commit-graphs\/|pack\/multi-pack-index)/.test(rest(path))))
    unread.add('an index over several packs or graphs is new, and was not read')
  const isTrue = !made.includes(graph) || agrees(Buffer.from(view.start(graph, 'after', mostGraphBytes) ?? new Uint8Array()), history)
  if (!isTrue) unread.add('objects/info/commit-graph tells git of other commits than there are, or is too large to be read')
}

/** Tells whether each commit in the graph has the tree and the first two parents that it really has. */
function agrees(graph: Buffer, history: Repository['history']): boolean {
  try {
    const idBytes = graph[5] === 2 ? 32 : 20
    const chunks = Array.from({ length: graph[6] ?? 0 }, (_, at) => 8 + at * 12)
    const [table, ids, data] = ['OIDF', 'OIDL', 'CDAT'].map((name) => {
      const found = chunks.find((at) => graph.toString('latin1', at, at + 4) === name)
      return found === undefined ? Number.NaN : Number(graph.readBigUInt64BE(found + 4))
    }) as [number, number, number]
    const number = graph.readUInt32BE(table + 255 * 4)
    if (number * (idBytes * 2 + 16) > graph.length) return false
    const idAt = (at: number) => graph.toString('hex', at, at + idBytes)
    return Array.from({ length: number }, (_, place) => place).every((place) => {
      const at = data + place * (idBytes + 16)
      const commit = history.commit(idAt(ids + place * idBytes))
      const parents = [0, 4].flatMap((more, nth) => {
        const parent = graph.readUInt32BE(at + idBytes + more)
        if (parent === noParent) return []
        return [parent >= 0x80000000 ? commit?.parents[nth] : idAt(ids + parent * idBytes)]
      })
      return (
        commit?.tree === idAt(at) &&
        parents.every((parent, nth) => parent === commit.parents[nth]) &&
        parents.length === Math.min(2, commit.parents.length)
      )
    })
  } catch {
    return false
  }
}
