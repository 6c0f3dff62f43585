/**
 * Moves aside, after a command, what the command created under a protected name in the workspace folder. A mount needs an existing target,
 * and place holders for all names would fill the folder, so only the names that other programs check constantly have one (watchedNames).
 */

import { closeSync, constants, lstatSync, openSync, readdirSync, readlinkSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { watchedNames } from '../../security/targets/protected-names.ts'
import { rootNames } from './discover.ts'
import { isStub } from './placeholders.ts'
import { isWithin } from './places.ts'

const O_PATH = 0o10000000

/** Path relative to the workspace → the identity of the file or folder, and the target of a link. */
export type Names = ReadonlyMap<string, { readonly identity: string; readonly link?: string }>

/** Excludes `.git` and the other watched names: a file that a person puts into a place holder belongs to that person. */
export function namesIn(workspace: string): Names {
  return new Map(
    rootNames(workspace).flatMap((path) => {
      const at = join(workspace, path)
      const stat = lstatSync(at, { throwIfNoEntry: false })
      if (stat === undefined || watchedNames.includes(path) || isEmptyStub(at)) return []
      const link = stat.isSymbolicLink() ? readlinkSync(at) : undefined
      return [[path, { identity: `${stat.dev} ${stat.ino} ${stat.mode & constants.S_IFMT} ${link ?? ''}`, link }] as const]
    }),
  )
}

/** An empty place holder of another command, for a name that the settings also protect. */
function isEmptyStub(path: string): boolean {
  return isStub(path) && lstatSync(path).isDirectory() && readdirSync(path).length === 0
}

/** Restores a replaced link; all other existing names are read-only. @returns one sentence for each kind of change */
export function moveNewAside(workspace: string, before: Names): string[] {
  const now = namesIn(workspace)
  const isSame = (path: string) => before.get(path)?.identity === now.get(path)?.identity
  const moved = [...now.keys()].filter((path) => !isSame(path)).map((path) => moveAside(workspace, path))
  const back = [...before].flatMap(([path, { link }]) => (link === undefined || isSame(path) ? [] : [putBack(workspace, path, link)]))
  return [
    ...said('was made under a name that other programs run or obey, and moved aside (rename by hand what is meant)', moved),
    ...said('was replaced, and the link put back', back),
  ]
}

function said(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what}: ${names.join(', ')}`]
}

export function moveAside(workspace: string, path: string): string {
  const to = `${path}.refused-${crypto.randomUUID().slice(0, 8)}`
  const failure = inFolder(workspace, dirname(path), (folder) => renameSync(join(folder, basename(path)), join(folder, basename(to))))
  return `${JSON.stringify(path)} → ${failure === undefined ? JSON.stringify(to) : `FAILED, remove it by hand (${failure})`}`
}

function putBack(workspace: string, path: string, link: string): string {
  const failure = inFolder(workspace, dirname(path), (folder) => symlinkSync(link, join(folder, basename(path))))
  return `${JSON.stringify(path)}${failure === undefined ? '' : `: FAILED (${failure})`}`
}

/**
 * Opens the folder by descriptor and acts only inside the workspace, because another command may be moving folders. @returns the failure
 */
function inFolder(workspace: string, folder: string, act: (held: string) => void): string | undefined {
  try {
    const held = openSync(join(workspace, folder), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      const own = `/proc/self/fd/${held}`
      if (!isWithin(readlinkSync(own), workspace)) return 'its folder was moved'
      act(own)
    } finally {
      closeSync(held)
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
