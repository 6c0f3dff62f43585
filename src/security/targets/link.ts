/** Symbolic links that a call names: each path is judged by what it leads to as well, and the plan says where that is. */

import { quote } from '../../kit/text.ts'
import { type Access, isUnder, judgePath, type PathPolicy, type PathVerdict, placeAsSpelt } from './path.ts'

/** What the gate is told of the file system. Neither may throw. */
export type Sight = {
  /** Where an absolute path leads with every link followed, `..` taken as the kernel does; missing ends stay as they are written. */
  real(path: string): string
  /** What an absolute pattern of the shell matches and is a link or lies behind one; undefined when there are too many names to look at. */
  linked(pattern: string): readonly string[] | undefined
}

/** `given` as the call names it, or relative to the workspace where a pattern does; `real` is absolute. */
export type FollowedLink = { readonly given: string; readonly real: string }

export type PathAsked = {
  readonly path: string
  /** `run`: a program, which may be a link to one of the system's. */
  readonly access: Access | 'run'
  readonly cwd: string
}

/** Judges the paths of one call. With `real` where the path leads elsewhere. */
export type Follower = {
  judge(asked: PathAsked): PathVerdict & { readonly real?: string }
  /** What was followed so far, each once. */
  links(): readonly FollowedLink[]
  /** The ends of links that are written through. */
  written(): readonly string[]
}

export function createFollower(policy: PathPolicy, sight: Sight | undefined): Follower {
  const links = new Map<string, FollowedLink>()
  const written = new Set<string>()

  function follow(asked: PathAsked, lexical: PathVerdict & { readonly ok: true }): PathVerdict & { readonly real?: string } {
    const spelt = placeAsSpelt({ ...asked, policy })
    const named = sight && /[*?[]/.test(asked.path) ? sight.linked(spelt) : []
    if (named === undefined) return tooMany(asked.path)
    const ends = [spelt, lexical.path].map((place) => ({
      given: asked.path,
      place: lexical.path,
      real: sight?.real(place) ?? lexical.path,
    }))
    const matched = named.map((place) => ({ given: relative(place, policy.workspace), place, real: sight?.real(place) ?? place }))
    const followed = [...ends, ...matched].filter(({ place, real }) => real !== place)
    for (const { given, real } of followed) {
      const refusal = judgeEnd({ given, real, access: asked.access, policy })
      if (refusal) return refusal
      if (isUnder(lexical.path, policy.workspace)) links.set(`${given}\0${real}`, { given, real })
      if (asked.access === 'write') written.add(real)
    }
    const [first] = followed
    return first ? { ...lexical, real: first.real } : lexical
  }

  return {
    judge(asked) {
      const lexical = judgePath({ ...asked, access: accessOf(asked), policy })
      return lexical.ok && sight ? follow(asked, lexical) : lexical
    },
    links: () => [...links.values()],
    written: () => [...written],
  }
}

function accessOf({ access }: Pick<PathAsked, 'access'>): Access {
  return access === 'write' ? 'write' : 'read'
}

type End = FollowedLink & { readonly access: PathAsked['access']; readonly policy: PathPolicy }

/** A Python environment of the workspace links to the system's Python: running that is no reading of a file outside. */
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
