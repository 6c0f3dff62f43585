/**
 * Clears the set-user-ID and set-group-ID bits of programs that a command left, because a user who starts one gets the rights of its owner
 * or group. The system-call filter refuses the first bit, but must allow the second, because folders commonly use it.
 */

import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd, errorText } from '../kit/errors.ts'
import type { Log } from '../runtime/port.ts'
import type { Spawn } from './contract.ts'
import { isWithin } from './protect/places.ts'
import { fixedPath } from './trial-key.ts'

const SET_USER = 0o4000
const SET_GROUP = 0o2000
/** The right without which the bit for the group means something else (mandatory locks). */
const GROUP_EXECUTES = 0o010
/** The rights without which the owner of a folder cannot list it, although others may still start the programs in it. */
const LOOK = 0o500
/** The kernel's time stamps are some milliseconds behind its clock. */
const LAG_MS = 1_000
/** Number of entries that we check ourselves, in a millisecond or two. */
const FEW = 500

// node:fs does not name this flag. It opens nothing for reading, so that we can also open a program without read permission.
const O_PATH = 0o10000000

/** `since` is the start of the command, in milliseconds since 1970. */
type Left = { readonly workspace: string; readonly since: number }

/**
 * Searches a large workspace (90 ms for 30,000 files) only if another user can reach it.
 * @returns the changed paths, relative to the workspace
 */
export async function dropRights(left: Left): Promise<string[]> {
  const found = walk(left, FEW) ?? (isReachable(left.workspace) ? await search(left) : [])
  return found.filter((path) => drop(left, path)).map((path) => path.slice(left.workspace.length + 1))
}

/** Collects the files that may be such programs. @returns undefined when there are more than `limit` entries */
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

/** Reachable by others, or by members of a group that our process does not have: members of our own group already have its rights. */
function isReachable(workspace: string): boolean {
  for (let folder = workspace; folder !== '/'; folder = dirname(folder)) {
    const { mode, gid } = statSync(folder)
    if ((mode & 0o001) === 0 && ((mode & 0o010) === 0 || gid === process.getegid?.())) return false
  }
  return true
}

/** Uses `find`, which takes a fifth of the time and lets our process continue. It also returns the folders that it cannot list. */
async function search(left: Left): Promise<string[]> {
  const everything = () => walk(left, Number.POSITIVE_INFINITY) ?? []
  const program = Bun.which('find', { PATH: fixedPath })
  if (program === null) return everything()
  const kinds = '( -type f ( -perm -2010 -o -perm -4000 ) ) -o ( -type d ! -perm -500 )'.split(' ')
  const argv = [program, left.workspace, '(', ...kinds, ')', '-print0']
  const child = Bun.spawn(argv, { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'ignore'] })
  const paths = (await child.stdout.text()).split('\0').filter((path) => path !== '')
  await child.exited
  return paths.flatMap((path) => [path, ...(walk(left, Number.POSITIVE_INFINITY, path) ?? [])])
}

function drop(left: Left, path: string): boolean {
  return change(left, path, (stat) => (stat.isFile() && hasRights(stat.mode) ? stat.mode & ~(SET_USER | SET_GROUP) : undefined))
}

function hasRights(mode: number): boolean {
  return (mode & SET_USER) !== 0 || ((mode & SET_GROUP) !== 0 && (mode & GROUP_EXECUTES) !== 0)
}

/**
 * Checks and changes the opened file itself, only if it changed since the command started and lies in the workspace: another command may be
 * moving files at the same time.
 */
function change({ workspace, since }: Left, path: string, mode: (stat: Stats) => number | undefined): boolean {
  try {
    if (mode(lstatSync(path)) === undefined) return false
    const held = openSync(path, O_PATH | constants.O_NOFOLLOW)
    using _end = atEnd(() => closeSync(held))
    const stat = fstatSync(held)
    const [newMode, own] = [mode(stat), `/proc/self/fd/${held}`]
    if (newMode === undefined || stat.ctimeMs < since - LAG_MS || !isWithin(readlinkSync(own), workspace)) return false
    chmodSync(own, newMode & 0o7777)
    return true
  } catch {
    // The file is gone, or belongs to another user.
    return false
  }
}

/** `workspace` is a path without symbolic links. */
type After = { readonly workspace: string; readonly spawn: Spawn; readonly log: Log }

/** Repairs the workspace after each command, and reports every repair in the result of the command. */
export function withRepairs({ workspace, spawn, log }: After): Spawn {
  return async (plan) => {
    // The commands of a private view change nothing in the workspace.
    if (plan.view === 'private') return spawn(plan)
    const since = Date.now()
    const ended = await spawn(plan)
    if (!ended.ok || plan.readOnly) return ended
    const undone = await removals(workspace, since)
    for (const what of undone) log('warn', `sandbox: ${what}`)
    return undone.length === 0 ? ended : { ...ended, undone }
  }
}

async function removals(workspace: string, since: number): Promise<string[]> {
  try {
    return (await dropRights({ workspace, since })).map(removalNote)
  } catch (error) {
    return [`the workspace could not be checked (${errorText(error)}); check what the command left`]
  }
}

function removalNote(path: string): string {
  return `the set-user-ID or set-group-ID bit of ${JSON.stringify(path)} was removed: a command may not leave programs with rights`
}
