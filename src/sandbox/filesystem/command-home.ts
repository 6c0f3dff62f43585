/** Gives commands a private home folder, and keeps the caches of package managers for each workspace in our own state. */

import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { namesIn } from '../../kit/proc.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { ChildEnvironment } from '../contract.ts'

/** The home folder inside: held in memory, and gone after the command, except for the caches. */
export const commandHome = '/tmp'
const CACHES = `${commandHome}/.cache`

/** Most tools keep their caches in ~/.cache; these do not. No tool looks for its own updates. */
export const cacheEnvironment: ChildEnvironment = {
  npm_config_cache: `${CACHES}/npm`,
  npm_config_update_notifier: 'false',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  CARGO_HOME: `${CACHES}/cargo`,
  GOMODCACHE: `${CACHES}/go-modules`,
  BUN_INSTALL_CACHE_DIR: `${CACHES}/bun`,
  GRADLE_USER_HOME: `${CACHES}/gradle`,
}

const FOLDER = 'run/command-caches'
const LIMIT = 4 * 2 ** 30
const UNUSED_MS = 30 * 24 * 3_600_000
const TIDY_EVERY_MS = 24 * 3_600_000

export type CacheUse = { readonly workspace: string; readonly folder: string; readonly bytes: number; readonly usedAt: number }

/** @returns the mounts of the caches; none where our state cannot hold them */
export function cacheMounts(stateHome: string, workspace: string): readonly string[] {
  const own = join(stateHome, FOLDER, sha256(workspace).slice(0, 16))
  const caches = join(own, 'caches')
  try {
    mkdirSync(caches, { recursive: true, mode: 0o700 })
    const name = join(own, 'workspace')
    if (!existsSync(name)) writeFileSync(name, workspace, { mode: 0o600 })
    const now = new Date()
    utimesSync(name, now, now)
    return ['--bind', caches, CACHES]
  } catch {
    return []
  }
}

/** Measures the caches of every workspace, largest first. It reads every folder in them. */
export function cacheUse(stateHome: string): readonly CacheUse[] {
  const root = join(stateHome, FOLDER)
  const all = namesIn(root).flatMap((name) => {
    const folder = join(root, name)
    const mark = lstatSync(join(folder, 'workspace'), { throwIfNoEntry: false })
    if (mark === undefined) return []
    return [{ workspace: readFileSync(join(folder, 'workspace'), 'utf8'), folder, bytes: bytesIn(folder), usedAt: mark.mtimeMs }]
  })
  return all.toSorted((a, b) => b.bytes - a.bytes)
}

/**
 * Removes the caches of workspaces that are gone or unused for a month, and the largest caches of a workspace beyond the limit. It looks at
 * most once a day.
 */
export function tidyCaches(stateHome: string, { now = Date.now(), limit = LIMIT } = {}): void {
  const done = join(stateHome, `${FOLDER}.tidied`)
  if (now - (lstatSync(done, { throwIfNoEntry: false })?.mtimeMs ?? 0) < TIDY_EVERY_MS) return
  for (const { workspace, folder, bytes, usedAt } of cacheUse(stateHome)) {
    if (!existsSync(workspace) || now - usedAt > UNUSED_MS) rmSync(folder, { recursive: true, force: true })
    else if (bytes > limit) shrink(join(folder, 'caches'), bytes - limit)
  }
  if (existsSync(join(stateHome, FOLDER))) writeFileSync(done, '')
}

function shrink(folder: string, excess: number): void {
  const all = namesIn(folder).map((name) => ({ at: join(folder, name), bytes: bytesIn(join(folder, name)) }))
  let left = excess
  for (const { at, bytes } of all.toSorted((a, b) => b.bytes - a.bytes)) {
    if (left <= 0) return
    rmSync(at, { recursive: true, force: true })
    left -= bytes
  }
}

function bytesIn(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return 0
  if (!stat.isDirectory()) return stat.blocks * 512
  return namesIn(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
}
