/** Follows the symbolic links that a call names: judges each path also by its destination, which the plan records. */

import { quote } from '../../kit/text.ts'
import { type Access, isUnder, judgePath, type PathPolicy, type PathVerdict, placeAsSpelt } from './path.ts'

/** Reads what the gate needs to know about the file system. No function may throw. */
export type Disk = {
  /** Resolves every link of an absolute path and handles `..` as the kernel does; parts that do not exist stay as written. */
  real(path: string): string
  /**
   * @returns the matches of an absolute shell pattern that are links or lie behind one; undefined when there are too many names to check
   */
  linked(pattern: string): readonly string[] | undefined
  /** Tells whether an absolute path leads to a regular file; absent: no file is known. */
  isFile?(path: string): boolean
  /** @returns what stands at an absolute path, itself a link or not; absent: nothing is known */
  state?(path: string): { readonly kind: 'file' | 'folder' | 'other'; readonly mode: number } | undefined
  /** @returns the names in an absolute folder */
  names?(folder: string): readonly string[] | undefined
}

/** `given` is the path as the call names it, or relative to the workspace for a pattern's match; `real` is absolute. */
export type FollowedLink = { readonly given: string; readonly real: string }

export type PathAsked = {
  readonly path: string
  /** `run` is a program, which may be a link to a program of the system. */
  readonly access: Access | 'run'
  readonly cwd: string
}

/** Judges the paths of one call. The verdict has `real` where the path leads to another place. */
export type Follower = {
  judge(question: PathAsked): PathVerdict & { readonly real?: string }
  /** Every link followed so far, without duplicates. */
  links(): readonly FollowedLink[]
  /** The destinations of links that the call writes through. */
  written(): readonly string[]
  /** The paths outside the workspace that were judged, directly or through a link; without programs and a sandbox's own folders. */
  outside(): readonly string[]
}

export function createFollower(policy: PathPolicy, disk: Disk | undefined): Follower {
  const links = new Map<string, FollowedLink>()
  const written = new Set<string>()
  const { sandboxed = false } = policy
  const outside: string[] = []
  // Links in these lead elsewhere than ours.
  const isOwn = (path: string) => sandboxed && /^\/(?:dev|proc|tmp|var\/tmp)(?:\/|$)/.test(path) && !isUnder(path, policy.workspace)

  function follow(question: PathAsked, lexical: PathVerdict & { readonly ok: true }): PathVerdict & { readonly real?: string } {
    if (isOwn(lexical.path)) return lexical
    const spelt = placeAsSpelt({ ...question, policy })
    const isBeyond = sandboxed && !lexical.inside
    const named = disk && !isBeyond && /[*?[]/.test(question.path) ? disk.linked(spelt) : []
    if (named === undefined) return tooMany(question.path)
    const ends = [spelt, lexical.path].map((place) => ({
      given: question.path,
      place: lexical.path,
      real: disk?.real(place) ?? lexical.path,
    }))
    const matched = named.map((place) => ({ given: relative(place, policy.workspace), place, real: disk?.real(place) ?? place }))
    const followed = [...ends, ...matched].filter(({ place, real }) => real !== place)
    for (const { given, real } of followed) {
      const strict = sandboxed && !isBeyond && isUnder(real, '/etc')
      const refusal = judgeEnd({ given, real, access: question.access, policy: strict ? { ...policy, sandboxed: false } : policy })
      if (refusal) return refusal
      if (isUnder(lexical.path, policy.workspace)) links.set(`${given}\0${real}`, { given, real })
      if (question.access === 'write') written.add(real)
      if (question.access !== 'run' && !isUnder(real, policy.workspace)) outside.push(real)
    }
    const [first] = followed
    return first ? { ...lexical, real: first.real } : lexical
  }

  return {
    judge(given) {
      const question = sandboxed ? { ...given, path: withoutDetour(given) } : given
      const lexical = judgePath({ ...question, access: accessOf(question), policy })
      if (lexical.ok && !lexical.inside && question.access !== 'run' && !isOwn(lexical.path)) outside.push(lexical.path)
      return lexical.ok && disk ? follow(question, lexical) : lexical
    },
    links: () => [...links.values()],
    written: () => [...written],
    outside: () => outside,
  }
}

/** Replaces /proc/PID/root and /proc/PID/cwd, which for a command mean its own root and its working folder. */
function withoutDetour({ path, cwd }: PathAsked): string {
  const detour = /^\/+proc\/(?:[^/]+\/)+?(root|cwd)(\/.*|$)/.exec(path.startsWith('/') ? path : `${cwd}/${path}`)
  return detour === null ? path : `${detour[1] === 'cwd' ? cwd : ''}${detour[2]}` || '/'
}

function accessOf({ access }: Pick<PathAsked, 'access'>): Access {
  return access === 'write' ? 'write' : 'read'
}

type End = FollowedLink & { readonly access: PathAsked['access']; readonly policy: PathPolicy }

/** A Python environment in the workspace links to the system's Python; running it does not count as reading a file outside. */
function judgeEnd({ given, real, access, policy }: End): (PathVerdict & { readonly ok: false }) | undefined {
  if (access === 'run' && /^\/(usr|bin|sbin|nix\/store|gnu\/store)\//.test(real)) return
  const verdict = judgePath({ path: real, access: accessOf({ access }), cwd: policy.workspace, policy })
  if (verdict.ok) return
  return { ...verdict, reason: `${quote(given)} leads through a symbolic link to ${quote(real)}; ${verdict.reason}` }
}

function tooMany(path: string): PathVerdict {
  const reason = `path: ${quote(path)} matches more names than can be looked at for links; name a folder or fewer files`
  return { ok: false, rule: 'path.too_many', reason }
}

function relative(place: string, workspace: string): string {
  return place.startsWith(`${workspace}/`) ? place.slice(workspace.length + 1) : place
}
