/**
 * Takes the set-group-ID bit from the programs that a command left: whoever starts one has the rights of its group. The system-call filter
 * has to let the bit through, for on folders it is in daily use.
 */

import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fixedPath } from './install.ts'
import { isWithin } from './protect/places.ts'

/** The bit counts only together with the group's right to execute. */
const PROGRAM = 0o2010
const BIT = 0o2000
/** Without these a folder's owner cannot look into it; others may still start what lies there. */
const LOOK = 0o500
/** The kernel's time stamps lag behind its clock by some milliseconds. */
const LAG_MS = 1_000
/** So many entries are looked at by ourselves, in a millisecond or two. */
const FEW = 500

// node:fs does not name it: opens nothing for reading, so that a program without that right can be held too.
const O_PATH = 0o10000000

/** `since` is when the command began, in milliseconds since 1970. */
export type Left = { readonly workspace: string; readonly since: number }

/**
 * A large workspace is looked through (90 ms for 30,000 files) only if somebody else can get there.
 * @returns the paths of what was changed, relative to the workspace
 */
export async function dropSetGroup(left: Left): Promise<string[]> {
  const found = walk(left, FEW) ?? (isReachable(left.workspace) ? await search(left) : [])
  return found.filter((path) => drop(left, path)).map((path) => path.slice(left.workspace.length + 1))
}

/** Of files that may be such programs. @returns undefined when there is more than `limit` to look at. */
function walk(left: Left, limit: number, root = left.workspace): string[] | undefined {
  const found: string[] = []
  const folders = [root]
  let seen = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of list(left, folder)) {
      if (++seen > limit) return undefined
      const path = join(folder, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (entry.isFile()) found.push(path)
    }
  }
  return found
}

function list(left: Left, folder: string) {
  try {
    change(left, folder, (stat) => (stat.isDirectory() && (stat.mode & LOOK) !== LOOK ? stat.mode | LOOK : undefined))
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

/** By others, or by members of a group that we are not started with: members of our own have its rights already. */
function isReachable(workspace: string): boolean {
  for (let folder = workspace; folder !== '/'; folder = dirname(folder)) {
    const { mode, gid } = statSync(folder)
    if ((mode & 0o001) === 0 && ((mode & 0o010) === 0 || gid === process.getegid?.())) return false
  }
  return true
}

/** By another program, for it takes a fifth of the time and ours goes on meanwhile. It names the folders that it cannot look into as well. */
async function search(left: Left): Promise<string[]> {
  const everything = () => walk(left, Number.POSITIVE_INFINITY) ?? []
  const program = Bun.which('find', { PATH: fixedPath })
  if (program === null) return everything()
  const kinds = ['(', '-type', 'f', '-perm', '-2010', ')', '-o', '(', '-type', 'd', '!', '-perm', '-500', ')']
  const argv = [program, left.workspace, '(', ...kinds, ')', '-print0']
  const child = Bun.spawn(argv, { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'ignore'] })
  const paths = (await child.stdout.text()).split('\0').filter((path) => path !== '')
  await child.exited
  return paths.flatMap((path) => [path, ...(walk(left, Number.POSITIVE_INFINITY, path) ?? [])])
}

function drop(left: Left, path: string): boolean {
  return change(left, path, (stat) => (stat.isFile() && (stat.mode & PROGRAM) === PROGRAM ? stat.mode & ~BIT : undefined))
}

/**
 * What was opened is looked at and changed, if it became what it is since the command began and lies in the workspace: another command may
 * be moving things about.
 */
function change({ workspace, since }: Left, path: string, mode: (stat: Stats) => number | undefined): boolean {
  try {
    if (mode(lstatSync(path)) === undefined) return false
    const held = openSync(path, O_PATH | constants.O_NOFOLLOW)
    try {
      const stat = fstatSync(held)
      const [wanted, own] = [mode(stat), `/proc/self/fd/${held}`]
      if (wanted === undefined || stat.ctimeMs < since - LAG_MS || !isWithin(readlinkSync(own), workspace)) return false
      chmodSync(own, wanted & 0o7777)
      return true
    } finally {
      closeSync(held)
    }
  } catch {
    // gone, or another user's
    return false
  }
}
