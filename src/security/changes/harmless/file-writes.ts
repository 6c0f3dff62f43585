/** Finds what a file tool may not write unasked, even where medium risks were approved in advance. */

import type { Policy } from '../../policy.ts'
import type { Sight } from '../../targets/link.ts'
import type { ReviewContext } from '../review-context.ts'
import { isManifestOrLock } from './manifests.ts'
import { createPathJudge } from './may-pass.ts'
import { isHiddenSetting } from './run-unasked.ts'

/** The paths that git ignores, and the answers that a person gave for good. */
export type AroundWrites = Pick<ReviewContext, 'ignored' | 'answered'>

type Writing = { readonly policy: Pick<Policy, 'workspace'>; readonly sight: Sight | undefined; readonly around: AroundWrites | undefined }

/** Returns those that also ask in `full`. */
export function hiddenAmong(paths: readonly string[], { workspace }: Pick<Policy, 'workspace'>): readonly string[] {
  return paths.filter((path) => path.startsWith(`${workspace}/`) && isHiddenSetting(path.slice(workspace.length + 1)))
}

/** @param paths absolute. @returns why the call asks; the same paths ask when a command changes them */
export function asksThough(paths: readonly string[], { policy: { workspace }, sight, around }: Writing): string | undefined {
  const placeOf = (path: string) => (path.startsWith('/') ? path : `${workspace}/${path}`)
  const state = (path: string) => sight?.state?.(placeOf(path))
  const judge = createPathJudge({
    kind: (path) => state(path)?.kind,
    names: (folder) => sight?.names?.(folder === '' ? workspace : placeOf(folder)),
    ignored: around?.ignored,
  })
  function why(path: string): string | undefined {
    if (around?.answered?.(path)) return
    if (isManifestOrLock(path)) return 'scripts, dependencies or tool settings of a package'
    const found = state(path)
    return judge.risk(path) ?? (found?.kind === 'file' && (found.mode & 0o111) !== 0 ? 'other content of an executable' : undefined)
  }
  for (const path of paths) {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path
    const reason = why(relative)
    if (reason !== undefined) return `${JSON.stringify(relative)}: ${reason}`
  }
}
