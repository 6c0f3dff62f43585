/** What a single command may read besides: as mounts, or, where there are none, by starting the other file itself. */

import { statSync } from 'node:fs'
import type { ReadablePath, SpawnPlan } from './confinement.ts'

/** Folders before the files that lie over something in them; the inodes tell a kept sandbox from one that must be made anew. */
export function readableMounts(paths: readonly ReadablePath[]): { readonly key: string; readonly arguments: readonly string[] } {
  const ordered = paths.toSorted((a, b) => Number(a.from !== undefined) - Number(b.from !== undefined))
  return {
    key: ordered.map(({ path, from = path }) => `${path}\t${from}\t${statSync(from, { throwIfNoEntry: false })?.ino}`).join('\n'),
    arguments: ordered.flatMap(({ path, from = path }) => ['--ro-bind', from, path]),
  }
}

/** For a sandbox without mounts. */
export function withoutMounts(plan: SpawnPlan): SpawnPlan {
  const [program = '', ...rest] = plan.argv
  const instead = plan.readablePaths?.find(({ path, from }) => from !== undefined && path === program)?.from
  return instead === undefined ? plan : { ...plan, argv: [instead, ...rest] }
}
