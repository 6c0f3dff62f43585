/** Finds what a file tool may not write unasked, even where medium risks were approved in advance. */

import { basename } from 'node:path'
import type { Policy } from '../../policy.ts'
import { spelt } from '../../targets/protected.ts'
import { isManifest } from './manifests.ts'
import { isRunUnasked } from './run-unasked.ts'

/** @param paths absolute. @returns why the call asks: it would write a file that development tools run or obey without being asked */
export function asksThough({ workspace }: Pick<Policy, 'workspace'>, paths: readonly string[]): string | undefined {
  const relative = paths.map((path) => (path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path))
  const found = relative.find((path) => isRunUnasked(spelt(path)) || isManifest(basename(spelt(path))))
  return found === undefined ? undefined : `${JSON.stringify(found)} is run or obeyed by development tools without a question`
}
