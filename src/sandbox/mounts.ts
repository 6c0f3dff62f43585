/** The mounts of a sandbox: the system is looked over once, the protected names at each command, for they come and go. */

import { forbiddenIn, withForbidden } from './forbidden.ts'
import type { SandboxSettings, SpawnPlan } from './port.ts'
import { guardsFor } from './protect.ts'
import { findRepositories } from './repositories.ts'
import { type GuardMounts, guardMounts, secretsInside, type View, viewArguments } from './view.ts'

type Mounting = { readonly settings: SandboxSettings; readonly view: View; readonly gitStub: string }
/** What of a command changes its mounts. */
type Besides = Pick<SpawnPlan, 'readablePaths' | 'readOnly'>
type Guarded = { readonly ok: true; readonly mounts: GuardMounts } | { readonly ok: false; readonly message: string }

export type Mounts = {
  fixed(): readonly string[]
  /** `make` puts a place holder and says whether it is needed. */
  guards(make: (path: string) => boolean, plan: Besides): Guarded
}

/** Repositories come and go as well; looking for them at every command would cost more than the command. */
const SEARCH_MS = 5_000

export function createMounts({ settings, view, gitStub }: Mounting): Mounts {
  const known: { fixed?: readonly string[]; repositories?: readonly string[]; searched?: number } = {}
  const { workspace } = view.places
  const repositories = () => {
    if (known.repositories !== undefined && performance.now() - (known.searched ?? 0) < SEARCH_MS) return known.repositories
    known.repositories = search(settings, workspace)
    known.searched = performance.now()
    return known.repositories
  }
  return {
    fixed() {
      known.fixed ??= viewArguments(view)
      return known.fixed
    },
    guards(make, { readablePaths, readOnly }) {
      const besides = { view, gitStub, readablePaths, readOnly }
      if (view.without.has('protected paths')) return { ok: true, mounts: guardMounts({ ...besides, guards: [] }) }
      const found = guardsFor({ workspace, extra: settings.protectedPaths, repositories: repositories() })
      if (!found.ok) return found
      const forbidden = forbiddenIn(workspace, [...(settings.forbiddenPaths?.() ?? []), ...secretsInside(view)])
      const all = withForbidden({ workspace, guards: found.guards, forbidden })
      if (!all.ok) return all
      const guards = all.guards.filter(({ type, path }) => type !== 'absent' || make(path))
      return { ok: true, mounts: guardMounts({ ...besides, guards }) }
    },
  }
}

function search({ log }: SandboxSettings, workspace: string): readonly string[] {
  const { repositories, complete } = findRepositories(workspace)
  if (!complete) log('warn', 'sandbox: the workspace has too many folders to look for every git repository', { found: repositories.length })
  return repositories
}
