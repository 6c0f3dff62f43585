/**
 * Reads what is mounted. Checks what a sandbox has really mounted before it gets its command: bubblewrap finds protected names by path, and
 * another command that runs at the same time may have replaced a folder on the way with a link to another place.
 */

import { readFileSync } from 'node:fs'
import { attempt } from '../kit/errors.ts'
import { isWithin } from './protect/places.ts'

type Mount = { readonly device: string; readonly root: string; readonly at: string }

const PATIENCE_MS = 10_000
const PAUSE_MS = 0.2

/** Waits for its set-up. @returns the problem as a message */
export async function verifyMounts(pid: number, paths: readonly string[]): Promise<string | undefined> {
  if (paths.length === 0) return undefined
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; ) {
    const mounts = mountsOf(pid)
    if (mounts === undefined) return undefined
    if (isSetUp(mounts)) return misplaced(mounts, paths)
    await Bun.sleep(PAUSE_MS)
  }
  return 'its mounts were not made in time'
}

/** @returns undefined when the process has ended; its exit explains why */
function mountsOf(pid: number): Mount[] | undefined {
  return attempt(() => parseMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8')))
}

/** Each line contains: number, parent, device, root on the device, mount point, … with white space and backslashes as octal numbers. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [, , device, root, at] = line.split(' ')
    return device === undefined || root === undefined || at === undefined ? [] : [{ device, root: plain(root), at: plain(at) }]
  })
}

function plain(field: string): string {
  return field.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/** The gate is mounted after everything that is checked here; the other two mounts exist while bubblewrap works. */
function isSetUp(mounts: readonly Mount[]): boolean {
  return mounts.some(({ at }) => at === '/.gate') && !mounts.some(({ at }) => isWithin(at, '/newroot') || isWithin(at, '/oldroot'))
}

/** Each path must be a mount point whose source is the same path in the folder mounted above it. */
export function misplaced(mounts: readonly Mount[], paths: readonly string[]): string | undefined {
  const wrong = paths.find((path) => {
    const own = mounts.findLast(({ at }) => at === path)
    const above = mounts
      .filter(({ at }) => at !== path && isWithin(path, at))
      .reduce((a, b) => (b.at.length >= a.at.length ? b : a), nothing)
    return own === undefined || own.device !== above.device || own.root !== below(above, path)
  })
  return wrong && `${JSON.stringify(wrong)} was changed while the sandbox was set up; try again when no other command runs`
}

const nothing: Mount = { device: '', root: '', at: '' }

function below({ root, at }: Mount, path: string): string {
  const rest = at === '/' ? path : path.slice(at.length)
  return root === '/' ? rest : root + rest
}

/** @returns the first mount point below the folder: an overlay would show an empty folder in its place, or fail */
export function subMountOf(workspace: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): string | undefined {
  return parseMounts(mountinfo)
    .map(({ at }) => at)
    .find((at) => at !== workspace && isWithin(at, workspace))
}
