/** Reads which files new commits and the index bring into a repository that no older commit held. */

import { attempt, errorText } from '../../kit/errors.ts'
import { quote } from '../../kit/text.ts'
import { inFolder, pathIn } from '../../security/changes/change-view.ts'
import type { GitEntryMove, MovedCommit, RepositoryMoves, TreeEntry } from '../../security/changes/git-moves.ts'
import { type IndexEntry, readEntries } from '../changes/apply/git-index.ts'
import { namesOf } from '../changes/tree/entry.ts'
import type { Repository } from './changed-repository.ts'
import { type Commit, GitMissing, isFolder, isNew, isOld, type TreeChange } from './read-history.ts'

type BroughtQuestion = {
  readonly repository: Repository
  /** Ids that are named now and were not before, each with where. */
  readonly named: ReadonlyMap<string, string>
  /** Which sides reach each commit that was met; `whole` is false when there were too many. */
  readonly sides: ReadonlyMap<string, number>
  readonly whole: boolean
  readonly attempt: <T>(use: () => T) => T | undefined
}

type Brought = Pick<RepositoryMoves, 'commits' | 'staged' | 'stagedPaths'>
type IsKnown = (entry: TreeChange) => boolean
type Index = ReadonlyMap<string, IndexEntry>

const mostCommits = 500
const mostOlder = 300
const mostIndexBytes = 64 * 1024 ** 2

export function readBrought({ repository, named, sides, whole, attempt }: BroughtQuestion): Brought {
  const { history, refs, doubts } = repository
  const index = { before: attempt(() => indexOn(repository, 'before')), after: attempt(() => indexOn(repository, 'after')) }
  const isKnown = createKnown(repository, index.before, sides)
  const fresh = [...sides].flatMap(([id, side]) => (side === isNew ? (history.commit(id) ?? []) : [])).toSorted((a, b) => b.date - a.date)
  const isAll = whole && fresh.length <= mostCommits
  if (!isAll) doubts.add('it gets so many new commits that only the latest one of each reference was looked at')
  const tips = [...named.keys()].flatMap((id) => history.commit(id) ?? [])
  const [older] = refs.before.values()
  const parentsOf = ({ parents }: Commit) => (isAll ? parents : older === undefined ? [] : [older])
  const commits = (isAll ? fresh : tips.slice(0, mostCommits)).map(
    (commit): MovedCommit => ({
      ...{ id: commit.id, subject: commit.subject, author: commit.author, files: 0, entries: [] },
      ...attempt(() => filesOf(repository, commit.tree, { parents: parentsOf(commit), isKnown })),
    }),
  )
  const bare = [...named].flatMap(([id, name]) => attempt(() => bareEntries(repository, { id, name, isKnown })) ?? [])
  const staged = attempt(() => stagedOf(repository, { ...index, isKnown }))
  return { commits, staged: [...bare, ...(staged?.entries ?? [])], stagedPaths: staged?.paths ?? 0 }
}

/** Content that an older tree, or the index before, holds at the same path is not new. */
function createKnown({ history, refs }: Repository, before: Index | undefined, sides: ReadonlyMap<string, number>): IsKnown {
  const state: { trees?: readonly string[] } = {}
  const isSame = (one: TreeEntry | undefined, two: TreeEntry | undefined) =>
    one !== undefined && one.id === two?.id && one.mode === two.mode
  const older = () => {
    const lost = [...sides].flatMap(([id, side]) => (side === isOld ? [id] : []))
    const ids = [...new Set([...refs.before.values()])].slice(0, mostOlder)
    return [...new Set([...ids, ...lost.slice(0, mostOlder)].flatMap((id) => history.commit(id)?.tree ?? []))]
  }
  const holds = (tree: string, { name, after }: TreeChange) => {
    return attempt(() => isSame(history.at(tree, name), after)) ?? false
  }
  return (entry) => {
    if (isSame(before?.get(`0 ${entry.name}`), entry.after)) return true
    state.trees ??= older()
    return state.trees.some((tree) => holds(tree, entry))
  }
}

function entriesOf({ isOfInterest }: Repository, found: readonly TreeChange[], isKnown: IsKnown): readonly GitEntryMove[] {
  return found.flatMap(({ name, before, after }) => {
    if (after === undefined) return []
    const entry = { ...namesOf(name), before, after }
    return isOfInterest(entry) && !isKnown({ name, after }) ? [entry] : []
  })
}

/** A merge brings only what none of its parents holds. */
function filesOf(
  repository: Repository,
  tree: string,
  { parents, isKnown }: { readonly parents: readonly string[]; readonly isKnown: IsKnown },
) {
  const { history } = repository
  const trees = parents.flatMap((parent) => history.commit(parent)?.tree ?? [])
  const [first = [], ...more] = (trees.length > 0 ? trees : [undefined]).map((before) => history.differences(before, tree))
  const others = more.map((each) => new Set(each.map(({ name }) => name)))
  const changed = first.filter(({ name }) => others.every((names) => names.has(name)))
  return { files: changed.length, entries: entriesOf(repository, changed, isKnown) }
}

type Bare = { readonly id: string; readonly name: string; readonly isKnown: IsKnown }

/** A reference may also name a tree, all of which counts as new, or a file, whose path is not known. */
function bareEntries(repository: Repository, { id, name, isKnown }: Bare): readonly GitEntryMove[] {
  const { history, unread } = repository
  const type = history.type(id)
  if (type === undefined) throw new GitMissing(id)
  if (type === 'blob') unread.add(`${name} names a file without its path`)
  return type === 'tree' ? entriesOf(repository, history.differences(undefined, id), isKnown) : []
}

/** @returns the entries by their stage and name */
function indexOn({ view, folder, wasThere, refs }: Repository, side: 'before' | 'after'): Index {
  const path = inFolder(folder, 'index')
  if ((side === 'before' && !wasThere) || view.kind(path, side) !== 'file') return new Map()
  const bytes = Buffer.from(view.start(path, side, mostIndexBytes) ?? new Uint8Array())
  const idBytes = [...refs.after.values(), ...refs.before.values()].some((id) => id.length === 64) ? 32 : 20
  const found = new Map<string, IndexEntry>()
  try {
    if (bytes.length === mostIndexBytes || bytes.toString('latin1', 0, 4) !== 'DIRC') throw new Error('too large or damaged')
    let at = readEntries(bytes, idBytes, (entry) => found.set(`${entry.stage} ${entry.name}`, entry))
    for (; at < bytes.length - idBytes; at += 8 + bytes.readUInt32BE(at + 4))
      if (bytes.toString('latin1', at, at + 4) === 'link') throw new Error('split over two files')
  } catch (error) {
    throw new Error(`its index is not understood: ${errorText(error)}`)
  }
  return found
}

type Staging = { readonly before: Index | undefined; readonly after: Index | undefined; readonly isKnown: IsKnown }

function stagedOf(repository: Repository, { before = new Map(), after = new Map(), isKnown }: Staging) {
  if (repository.view.change(inFolder(repository.folder, 'index')) === undefined) return { entries: [], paths: 0 }
  const changed = [...after].flatMap(([key, { name, mode, id }]): readonly TreeChange[] => {
    const was = before.get(key)
    return was?.id === id && was.mode === mode ? [] : [{ name, before: was && { mode: was.mode, id: was.id }, after: { mode, id } }]
  })
  if (changed.some(({ after }) => after && isFolder(after))) throw new Error('its index holds whole folders (sparse index)')
  const hidden = [...after.values()].filter(({ name, isHidden }) => isHidden && !before.get(`0 ${name}`)?.isHidden)
  const [first] = hidden
  const more = hidden.length > 1 ? ` and ${hidden.length - 1} more` : ''
  if (first)
    repository.doubts.add(
      `git would no longer look at ${JSON.stringify(namesOf(first.name).path)}${more} (skip-worktree or assume-unchanged)`,
    )
  const removed = [...before].flatMap(([key, { name }]) => (after.has(key) ? [] : [{ name }]))
  refuseBeside(repository, [...changed, ...removed])
  return { entries: entriesOf(repository, changed, isKnown), paths: changed.length + removed.length }
}

/** Where the workspace is a part of the work tree, no command writes the rest, which would then seem to be changed back. */
function refuseBeside({ root, workspace, refused }: Repository, changed: readonly { readonly name: string }[]): void {
  if (root === undefined || !root.startsWith('/')) return
  const beside = changed.map(({ name }) => namesOf(name).path).filter((path) => pathIn(workspace, inFolder(root, path)).startsWith('/'))
  const more = beside.length > 1 ? ` and ${beside.length - 1} more` : ''
  if (beside[0] !== undefined)
    refused.add(
      `its index changes ${quote(beside[0])}${more} beside the workspace, where no command writes; start in ${quote(root)} for that`,
    )
}
