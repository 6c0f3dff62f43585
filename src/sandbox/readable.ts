/** Lets a single command reach extra paths: as mounts or, in a sandbox without mounts, by starting the replacement file itself. */

import { statSync } from 'node:fs'
import type { ReadablePath, SpawnPlan } from './contract.ts'

/** Puts folders before the files that are mounted over their content. The inodes in `key` tell whether a kept sandbox still fits. */
export function readableMounts(paths: readonly ReadablePath[]): { readonly key: string; readonly arguments: readonly string[] } {
  const ordered = paths.toSorted((a, b) => Number(a.from !== undefined) - Number(b.from !== undefined))
  return {
    key: ordered.map(({ path, from = path }) => `${path}\t${from}\t${statSync(from, { throwIfNoEntry: false })?.ino}`).join('\n'),
    arguments: ordered.flatMap(({ path, from = path, writable }) => [writable ? '--bind' : '--ro-bind', from, path]),
  }
}

/** Rewrites the plan for a sandbox without mounts: starts the replacement file instead of the program. */
export function withoutMounts(plan: SpawnPlan): SpawnPlan {
  const [program = '', ...rest] = plan.argv
  const instead = plan.readablePaths?.find(({ path, from }) => from !== undefined && path === program)?.from
  return instead === undefined ? plan : { ...plan, argv: [instead, ...rest] }
}
