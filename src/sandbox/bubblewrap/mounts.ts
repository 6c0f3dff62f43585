/** Computes the mounts of a sandbox: the system mounts once, and those of protected names at each command, because names change. */

import type { Ahead, SandboxSettings } from '../contract.ts'
import { findUnread, forbiddenIn, hiddenInView, withForbidden } from '../protect/forbidden.ts'
import { isWithin } from '../protect/places.ts'
import { type Discovered, discover, type Guard, guardsFor, MOST, rootNames } from '../protect/protected-mounts.ts'
import { type GuardMounts, guardMounts, secretsInside, type View, viewArguments } from './view.ts'

type Mounting = { readonly settings: SandboxSettings; readonly view: View; readonly gitStub: string }
type Guarded = { readonly ok: true; readonly mounts: GuardMounts } | { readonly ok: false; readonly message: string }

export type Mounts = {
  fixed(): readonly string[]
  /** `make` creates a place holder and returns whether the mount needs it. */
  guards(make: (path: string) => boolean, plan: Ahead): Guarded
  /** Makes the next command search the workspace again, because the search ahead of it may be old. */
  forget(): void
}

/** Limits the age of a search for repositories and deeper names: a search at every command would cost more than the command. */
const SEARCH_MS = 5_000
/**
 * Limits the age of a search for unread files, per folder (twenty times as long as it takes on an idle machine) and in all: a small
 * workspace is searched at every command.
 */
const [FOLDER_MS, LONGEST_MS] = [0.15, 500]

export function createMounts({ settings, view, gitStub }: Mounting): Mounts {
  const known: {
    fixed?: readonly string[]
    discovered?: Discovered
    searched?: number
    unread?: { readonly files: readonly string[]; readonly until: number }
  } = {}
  const { workspace } = view.places
  const discovered = () => {
    if (known.discovered !== undefined && performance.now() - (known.searched ?? 0) < SEARCH_MS) return known.discovered
    known.discovered = search(settings, workspace)
    known.searched = performance.now()
    return known.discovered
  }
  const unread = (): readonly string[] => {
    if (view.without.has('unread files')) return []
    if (known.unread !== undefined && performance.now() < known.unread.until) return known.unread.files
    const { files, complete, folders } = findUnread({ patterns: settings.forbiddenReads ?? [], workspace, home: view.places.home })
    known.unread = { files, until: performance.now() + Math.min(folders * FOLDER_MS, LONGEST_MS) }
    if (!complete) settings.log('warn', 'sandbox: too many folders or files to hide every file of forbidden_reads', {})
    return files
  }
  return {
    fixed() {
      known.fixed ??= viewArguments(view)
      return known.fixed
    },
    forget() {
      delete known.unread
    },
    guards(make, { readablePaths, readOnly, writablePaths, view: kind }) {
      const besides = { view, gitStub, readablePaths, readOnly, writablePaths, direct: kind !== 'private' && readOnly !== true }
      if (view.without.has('protected paths')) return { ok: true, mounts: guardMounts({ ...besides, guards: [] }) }
      const forbidden = forbiddenIn(workspace, [...(settings.forbiddenPaths?.() ?? []), ...unread(), ...secretsInside(view)])
      if (kind === 'private') return { ok: true, mounts: guardMounts({ ...besides, guards: hiddenInView({ workspace, forbidden }) }) }
      const { repositories, names } = discovered()
      const near = [...new Set([...rootNames(workspace), ...names])]
      const found = guardsFor({ workspace, extra: settings.protectedPaths, repositories, names: near })
      if (!found.ok) return found
      const all = withForbidden({ workspace, guards: found.guards, forbidden })
      if (!all.ok) return all
      // Everything outside of the writable paths is read-only by the mount of the workspace.
      const isNeeded = ({ type, path }: Guard) => type === 'hide' || (writablePaths?.some((folder) => isWithin(path, folder)) ?? true)
      const guards = all.guards.filter((guard) => isNeeded(guard) && (guard.type !== 'absent' || (!readOnly && make(guard.path))))
      return { ok: true, mounts: guardMounts({ ...besides, guards }) }
    },
  }
}

function search({ log }: SandboxSettings, workspace: string): Discovered {
  const found = discover(workspace)
  const { repositories, names, complete } = found
  if (!complete)
    log('warn', 'sandbox: the workspace has too many folders to look for every git repository and protected name', {
      found: repositories.length,
    })
  if (names.length > MOST)
    log('warn', `sandbox: of the protected names in the workspace only the ${MOST} nearest to its root are read-only`, {
      found: names.length,
    })
  return found
}
