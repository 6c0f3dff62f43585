/** Finds other file systems mounted inside a workspace: an overlay would show empty folders in their place, or fail. */

import { readFileSync } from 'node:fs'
import { isWithin } from '../protect/places.ts'
import { parseMounts } from '../verify.ts'

/** @returns the first mount point below the folder */
export function subMountOf(workspace: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): string | undefined {
  return parseMounts(mountinfo)
    .map(({ at }) => at)
    .find((at) => at !== workspace && isWithin(at, workspace))
}
