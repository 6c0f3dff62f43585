/** Tells what is at a path before and after a change set: from the changes where they name the path, otherwise from the workspace. */

import { attempt } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, EntryState, OutsideGit } from '../../runtime/changes.ts'
import { isUnder, normalise, type PathPolicy } from '../targets/path.ts'
import type { Look, PathMark, Side } from './review-context.ts'

export type ChangeView = {
  readonly changes: readonly Change[]
  kind(path: string, side: Side): EntryState['kind'] | undefined
  /** @returns what is at a path on both sides; undefined where `kind` must be asked */
  mark(path: string): PathMark | undefined
  /** @returns the text of a whole regular file; undefined when it is missing, larger than `maxBytes` or not UTF-8 */
  text(path: string, side: Side, maxBytes: number): string | undefined
  /** @returns the first `maxBytes` of a regular file */
  start(path: string, side: Side, maxBytes: number): Uint8Array | undefined
  target(path: string, side: Side): string | undefined
  /** @returns undefined when the permission bits are not known */
  mode(path: string, side: Side): number | undefined
  /** @returns undefined when the folder cannot be listed, which is not the same as an empty one */
  names(path: string, side: Side): readonly string[] | undefined
  change(path: string): Change | undefined
  /** The git directory outside the workspace, whose paths are absolute. */
  readonly outside: OutsideGit | undefined
}

export function createChangeView(changes: readonly Change[], look: Look): ChangeView {
  const byPath = new Map(changes.map((change) => [change.path, change]))
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

  const unchanged = new Map<string, EntryState['kind'] | undefined>()

  function kind(path: string, side: Side) {
    const change = byPath.get(path)
    return change === undefined ? unchangedKind(path, side) : change[side]?.kind
  }

  /** A path that no change names is the same on both sides; in a folder that does not exist, nothing exists. */
  function unchangedKind(path: string, side: Side) {
    const above = byPath.get(folderOf(path))
    if (above !== undefined && (above[side]?.kind !== 'folder' || above.before?.kind !== 'folder')) return undefined
    if (!unchanged.has(path)) unchanged.set(path, look.kind(path, 'before'))
    return unchanged.get(path)
  }

  function start(path: string, side: Side, maxBytes: number): Uint8Array | undefined {
    return kind(path, side) === 'file' ? look.read(path, byPath.has(path) ? side : 'before', maxBytes) : undefined
  }

  function text(path: string, side: Side, maxBytes: number): string | undefined {
    const found = start(path, side, maxBytes + 1)
    return attempt(() => (found === undefined || found.length > maxBytes ? undefined : decoder.decode(found)))
  }

  /** `look` may show more changes than are judged here, because a person may have chosen some of them. */
  function names(path: string, side: Side): readonly string[] | undefined {
    if (side === 'before') return look.list?.(path, side)
    const lists = kind(path, side) === 'folder' || path === '' ? [look.list?.(path, 'before'), look.list?.(path, 'after')] : []
    if (lists.every((list) => list === undefined)) return undefined
    return [...new Set(lists.flatMap((list) => list ?? []))].filter((name) => kind(inFolder(path, name), side) !== undefined)
  }

  return {
    changes,
    kind,
    mark: (path) => (byPath.has(path) ? undefined : look.mark?.(path)),
    start,
    text,
    target: (path, side) => (byPath.has(path) ? byPath.get(path)?.[side]?.target : look.link?.(path, 'before')),
    mode: (path, side) => (byPath.has(path) ? byPath.get(path)?.[side]?.mode : look.mode?.(path, 'before')),
    names,
    change: (path) => byPath.get(path),
    outside: look.outside,
  }
}

/** Returns the change with another content of its file; without a content, and for a deletion, it returns the change as it is. */
export function withContent(change: Change, content: Uint8Array | undefined): Change {
  if (content === undefined || change.after === undefined) return change
  return { ...change, after: { ...change.after, size: content.length, sha256: sha256(content) } }
}

/** @returns the absolute path of what a change names */
export function placeOf(workspace: string, path: string): string {
  return path.startsWith('/') ? path : `${workspace}/${path}`
}

/** @returns the path as a change names it: relative in the workspace, absolute outside of it */
export function pathIn(workspace: string, place: string): string {
  return place.startsWith(`${workspace}/`) ? place.slice(workspace.length + 1) : place
}

/** @returns the folder of a path relative to the workspace; '' is the workspace */
export function folderOf(path: string): string {
  const end = path.lastIndexOf('/')
  return end < 0 ? '' : path.slice(0, end)
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

export function inFolder(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}

/** Tells whether the path is the folder or lies below it. */
export function isBelow(path: string, folder: string): boolean {
  return folder === '' || path === folder || (path.startsWith(folder) && path[folder.length] === '/')
}

/**
 * `inside` is a path as changes name it, '' for the workspace itself, absolute in the git directory outside of it; `outside` is absolute and
 * not followed further.
 */
type LinkEnd = { readonly inside: string; readonly outside?: undefined } | { readonly outside: string; readonly inside?: undefined }

type Start = { readonly view: ChangeView; readonly policy: Pick<PathPolicy, 'workspace'>; readonly side: Side }

/**
 * Follows a symbolic link name by name through the workspace as it would be with the changes.
 * @returns undefined for links that go round in circles or cannot be read
 */
export function resolveLink({ link, ...start }: Start & { readonly link: string }): LinkEnd | undefined {
  const target = start.view.target(link, start.side)
  return target === undefined ? undefined : resolveText({ ...start, folder: folderOf(link), target })
}

const mostLinks = 40

/** Resolves the text of a link, or of a file that names a path, as if it stood in this folder of the workspace. */
export function resolveText({
  view,
  policy,
  side,
  folder,
  target,
}: Start & { readonly folder: string; readonly target: string }): LinkEnd | undefined {
  const git = view.outside?.common
  const parts = (path: string) => (git !== undefined && isBelow(path, git) ? [git, ...split(path.slice(git.length))] : split(path))
  const at = { names: parts(folder), rest: [target], links: 0 }
  while (at.rest.length > 0) {
    const text = at.rest.shift() ?? ''
    // The real name is not UTF-8, so its target cannot be read.
    if (text.includes('\ufffd')) return undefined
    const top = at.names[0] === git && git !== undefined ? git : policy.workspace
    if (text.startsWith('/') || (text === '..' && at.names.length === (top === git ? 1 : 0))) {
      const whole = [text.startsWith('/') ? text : `${top}/${text}`, ...at.rest].join('/')
      const place = normalise(whole)
      const isInGit = git !== undefined && isBelow(place, git) && !isUnder(place, policy.workspace)
      if (!isInGit && !isUnder(place, policy.workspace)) return { outside: place }
      at.names = isInGit ? [git] : []
      at.rest = split(place.slice((isInGit ? git : policy.workspace).length))
    } else if (text.includes('/')) at.rest.unshift(...split(text))
    else if (text === '..') at.names.pop()
    else if (text !== '.' && text !== '') {
      const path = [...at.names, text].join('/')
      if (view.kind(path, side) !== 'link') at.names.push(text)
      else {
        const next = view.target(path, side)
        if (next === undefined || ++at.links > mostLinks) return undefined
        at.rest.unshift(next)
      }
    }
  }
  return { inside: at.names.join('/') }
}

function split(path: string): string[] {
  return path.split('/').filter(Boolean)
}
