/** Builds change sets and what stands around them from two plain maps of paths: the workspace before and after. */

import { sha256 } from '../../kit/sha256.ts'
import type { Change, ChangeReview, EntryState } from '../../runtime/changes.ts'
import { reviewChanges } from './review-changes.ts'
import type { Look, ReviewContext, Side } from './review-context.ts'

/** A text is a file; `{ link }`, `{ folder }`, `{ other }` and `{ file, mode }` are what they say. */
export type FixtureEntry =
  | string
  | { readonly link: string }
  | { readonly folder: true; readonly mode?: number }
  | { readonly other: true }
  | { readonly file: string | Uint8Array; readonly mode: number }

export type Tree = { readonly [path: string]: FixtureEntry }

export const policy = { workspace: '/home/u/ws', workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home: '/home/u' }

/** Adds the folders above each path. */
function whole(tree: Tree): Map<string, FixtureEntry> {
  const all = new Map<string, FixtureEntry>()
  for (const [path, entry] of Object.entries(tree)) {
    const parts = path.split('/')
    for (let depth = 1; depth < parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (!all.has(folder)) all.set(folder, { folder: true })
    }
    all.set(path, entry)
  }
  return all
}

const encoder = new TextEncoder()

function bytesOf(entry: FixtureEntry | undefined): Uint8Array | undefined {
  if (typeof entry === 'string') return encoder.encode(entry)
  if (entry === undefined || !('file' in entry)) return
  return typeof entry.file === 'string' ? encoder.encode(entry.file) : entry.file
}

function stateOf(entry: FixtureEntry | undefined): EntryState | undefined {
  if (entry === undefined) return
  const bytes = bytesOf(entry)
  if (bytes)
    return {
      kind: 'file',
      mode: typeof entry === 'object' && 'mode' in entry ? (entry.mode ?? 0o644) : 0o644,
      size: bytes.length,
      sha256: sha256(bytes),
    }
  if (typeof entry === 'object' && 'link' in entry) return { kind: 'link', mode: 0o777, target: entry.link }
  if (typeof entry === 'object' && 'folder' in entry) return { kind: 'folder', mode: entry.mode ?? 0o755 }
  return { kind: 'other', mode: 0o644 }
}

export function lookAt(before: Tree, after: Tree): Look {
  const trees: { readonly [side in Side]: Map<string, FixtureEntry> } = { before: whole(before), after: whole(after) }
  return {
    outside: outsideIn([...Object.keys(before), ...Object.keys(after)]),
    read: (path, side, maxBytes) => bytesOf(trees[side].get(path))?.slice(0, maxBytes),
    kind: (path, side) => (path === '' ? 'folder' : stateOf(trees[side].get(path))?.kind),
    mode: (path, side) => stateOf(trees[side].get(path))?.mode,
    link: (path, side) => stateOf(trees[side].get(path))?.target,
    list: (path, side) =>
      [...trees[side].keys()]
        .filter((each) => each.startsWith(path === '' ? '' : `${path}/`))
        .flatMap((each) => {
          const rest = path === '' ? each : each.slice(path.length + 1)
          return rest.includes('/') ? [] : [rest]
        }),
  }
}

/** A repository with an absolute path is that of the workspace. */
function outsideIn(paths: readonly string[]): Look['outside'] {
  const [head] = paths.filter((path) => path.startsWith('/') && path.endsWith('/HEAD')).toSorted((a, b) => a.length - b.length)
  const common = head?.slice(0, -'/HEAD'.length)
  return common === undefined ? undefined : { root: policy.workspace, git: common, common }
}

export function changesBetween(before: Tree, after: Tree): readonly Change[] {
  const [was, is] = [whole(before), whole(after)]
  const changes = [...new Set([...was.keys(), ...is.keys()])].toSorted().map((path) => {
    const [one, two] = [stateOf(was.get(path)), stateOf(is.get(path))]
    return { path, ...(one ? { before: one } : {}), ...(two ? { after: two } : {}) }
  })
  return changes.filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after))
}

/** Everything of `before` stays, except what `change` replaces, adds or, with undefined, deletes. */
export function review(
  before: Tree,
  change: { readonly [path: string]: FixtureEntry | undefined },
  context: Partial<ReviewContext> = {},
): ChangeReview {
  const merged: { readonly [path: string]: FixtureEntry | undefined } = { ...before, ...change }
  const after: Tree = Object.fromEntries(Object.entries(merged).flatMap(([path, entry]) => (entry === undefined ? [] : [[path, entry]])))
  return reviewChanges(changesBetween(before, after), { policy, level: 'auto', approved: false, look: lookAt(before, after), ...context })
}

/** For changes that no tree can have, such as names that are no UTF-8. */
export function reviewOf(changes: readonly Change[]): ChangeReview {
  return reviewChanges(changes, { policy, level: 'full', approved: false, look: lookAt({}, {}) })
}
