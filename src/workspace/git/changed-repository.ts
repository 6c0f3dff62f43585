/** Describes one repository that a change set changes: its folders, objects and references, before and after. */

import { posix } from 'node:path'
import type { Change } from '../../runtime/changes.ts'
import { type ChangeView, folderOf, inFolder, isBelow, nameOf, pathIn, placeOf } from '../../security/changes/change-view.ts'
import type { RefMove } from '../../security/changes/git-moves.ts'
import type { EntryJudge } from '../../security/changes/harmless/judge-moves.ts'
import type { ReviewContext, Side } from '../../security/changes/review-context.ts'
import { createHistory, type GitHistory } from './read-history.ts'
import type { Objects } from './read-objects.ts'

export type MovesAsked = {
  /** The absolute folder that holds what the command wrote. */
  readonly upper: string
  readonly changes: readonly Change[]
  /** Judges the entries; the result contains only the paths that it reports. */
  readonly context: ReviewContext
  /** The changes come from a fetch, pull or push that BraidClaw carried out, so the references that track the server are not judged. */
  readonly isTransfer?: boolean
}

/** One repository whose files a change set changes. Paths are as changes name them. */
export type Repository = {
  readonly workspace: string
  readonly view: ChangeView
  /** The folder of HEAD and the index, the folder of objects and references, and the work tree. */
  readonly folder: string
  readonly common: string
  readonly root: string | undefined
  /** The changes below the folder. */
  readonly own: readonly Change[]
  /** Tells whether git could use the folder of objects and references before. */
  readonly wasThere: boolean
  readonly refs: { readonly [side in Side]: ReadonlyMap<string, string> }
  readonly moved: readonly RefMove[]
  /** Tells whether a reference only tracks what a server has, as git told it outside the sandbox. */
  readonly isTracked: (name: string) => boolean
  readonly places: readonly string[]
  readonly objects: Objects
  readonly history: GitHistory
  readonly isCutOff: (id: string) => boolean
  readonly refused: Set<string>
  readonly doubts: Set<string>
  readonly unread: Set<string>
  /** @returns one character per byte; '' for what is missing */
  text(path: string, side: Side): string
  ids(path: string, side: Side): ReadonlySet<string>
  rest(path: string): string
  isOfInterest(entry: Parameters<EntryJudge>[0]): boolean
}

export function restOf(path: string, folder: string): string {
  return folder === '' ? path : path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : ''
}

export type RepositoryOpening = MovesAsked & Pick<Repository, 'view' | 'folder' | 'own' | 'wasThere'> & { readonly judging: EntryJudge }

const mostText = 16 * 1024 ** 2
const anyId = /\b(?:[\da-f]{64}|[\da-f]{40})\b/g

export function describeRepository(opening: RepositoryOpening, places: readonly string[], objects: Objects): Repository {
  const { view, folder, wasThere, own, isTransfer = false, judging, context } = opening
  const { workspace } = context.policy
  const common = commonOf(view, folder)
  const root = rootOf(opening)
  const unread = new Set<string>()
  const texts = new Map<string, string>()
  const text = (path: string, side: Side) => {
    const known = texts.get(`${side} ${path}`)
    if (known !== undefined) return known
    const isThere = (side === 'after' || wasThere) && view.kind(path, side) === 'file'
    const bytes = isThere ? view.start(path, side, mostText + 1) : undefined
    if (isThere && (bytes?.length ?? Number.POSITIVE_INFINITY) > mostText)
      unread.add(`${restOf(path, folder)} cannot be read, or not to its end`)
    const found = Buffer.from(bytes ?? new Uint8Array()).toString('latin1')
    texts.set(`${side} ${path}`, found)
    return found
  }
  const ids = (path: string, side: Side) => new Set((text(path, side).match(anyId) ?? []).filter((id) => !/^0+$/.test(id)))
  const refs = readRefs({ view, folder, common, changes: opening.changes, text })
  const names = new Set([...refs.before.keys(), ...refs.after.keys()])
  const moved = [...names].flatMap((name): readonly RefMove[] => {
    const [from, to] = [refs.before.get(name), refs.after.get(name)]
    return from === to ? [] : [{ name, from, to, commits: [] }]
  })
  // The index and a commit mostly bring the same.
  const judged = new Map<string, boolean>()
  const isOfInterest: Repository['isOfInterest'] = (entry) => {
    const key = JSON.stringify(entry)
    const found = judged.get(key) ?? judging(entry, { folder, root }) !== undefined
    judged.set(key, found)
    return found
  }
  const shallow = ids(inFolder(common, 'shallow'), 'after')
  return {
    ...{ workspace, view, folder, common, root, own, wasThere, refs, moved, places, objects, unread, text, ids },
    history: createHistory(objects),
    isCutOff: (id) => shallow.has(id),
    isTracked: (name) => isTransfer && /^refs\/(?:remotes|tags)\//.test(name),
    refused: new Set(),
    doubts: new Set(),
    rest: (path) => restOf(path, folder),
    isOfInterest,
  }
}

export function commonOf(view: ChangeView, folder: string): string {
  const text = view.text(inFolder(folder, 'commondir'), 'after', 4_096)?.trim()
  return text === undefined ? folder : posix.join(folder, text)
}

/** A linked worktree names its work tree; for a repository with another name than .git the work tree is not known, but for that of the workspace. */
function rootOf({ view, folder, context }: RepositoryOpening): string | undefined {
  const { workspace } = context.policy
  const { outside } = view
  if (outside && [outside.git, outside.common].includes(folder)) return outside.root === workspace ? '' : outside.root
  if (nameOf(folder) === '.git') return folderOf(folder)
  const link = view.text(inFolder(folder, 'gitdir'), 'after', 4_096)?.trim()
  return link?.startsWith(`${workspace}/`) && nameOf(link) === '.git' ? folderOf(link.slice(workspace.length + 1)) : undefined
}

/** @returns absolute folders of objects: what the command wrote, what was there, and what the repository borrows */
export function objectPlaces(
  { workspace, upper, view }: { readonly workspace: string; readonly upper: string; readonly view: ChangeView },
  folder: string,
): readonly string[] {
  const git = view.outside?.common
  const isOwn = (place: string) => git !== undefined && isBelow(place, git)
  const found = new Set([inFolder(commonOf(view, folder), 'objects')])
  for (const each of found) {
    if (found.size > 20 || (each.startsWith('/') && !isOwn(each))) continue
    const lines = view.text(`${each}/info/alternates`, 'after', 64 * 1024)?.split('\n') ?? []
    for (const line of lines) {
      const place = line.startsWith('/') ? posix.normalize(line) : line && !line.startsWith('#') ? posix.join(each, line) : undefined
      if (place) found.add(pathIn(workspace, place))
    }
  }
  return [...found].flatMap((each) => {
    if (git !== undefined && isOwn(each)) return [`${upper}.git${each.slice(git.length)}`, each]
    return each.startsWith('/') ? [each] : [`${upper}/${each}`, placeOf(workspace, each)]
  })
}

const mostRefs = 20_000

type RefsOf = Pick<Repository, 'view' | 'folder' | 'common' | 'text'> & Pick<MovesAsked, 'changes'>

/** The values of all references; HEAD is one only while it names no branch. */
function readRefs({ view, folder, common, changes, text }: RefsOf): Repository['refs'] {
  const refs = {
    before: packedIn(text(inFolder(common, 'packed-refs'), 'before')),
    after: packedIn(text(inFolder(common, 'packed-refs'), 'after')),
  }
  const top = inFolder(common, 'refs')
  const changed = changes.flatMap(({ path }) => (isBelow(path, top) ? [path] : []))
  for (const path of new Set([inFolder(folder, 'HEAD'), ...filesBelow(view, top), ...changed]))
    for (const side of ['before', 'after'] as const) {
      const id = /^([\da-f]{40}|[\da-f]{64})\s*$/.exec(text(path, side))?.[1]
      if (id !== undefined) refs[side].set(restOf(path, common) || 'HEAD', id)
    }
  return refs
}

function packedIn(text: string): Map<string, string> {
  return new Map([...text.matchAll(/^([\da-f]{40}|[\da-f]{64}) (refs\/\S+)$/gm)].map(([, id = '', name = '']) => [name, id] as const))
}

/** The files that were there before. */
function filesBelow(view: ChangeView, top: string): readonly string[] {
  const found: string[] = []
  const folders = [top]
  for (const folder of folders) {
    if (found.length + folders.length > mostRefs) break
    for (const name of view.names(folder, 'before') ?? []) {
      const path = inFolder(folder, name)
      const kind = view.kind(path, 'before')
      if (kind === 'folder') folders.push(path)
      if (kind === 'file') found.push(path)
    }
  }
  return found
}
