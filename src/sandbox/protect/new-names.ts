/**
 * Moves aside what a command made in the workspace itself under a protected name, once it is over: a mount needs something to stand on, and a
 * place holder for every name would be a folder full of them. Only what is looked at all the time has one (watchedNames).
 */

import { closeSync, constants, lstatSync, openSync, readdirSync, readlinkSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { watchedNames } from '../../security/targets/protected-names.ts'
import { rootNames } from '../discover.ts'
import { isStub } from './placeholders.ts'
import { isWithin } from './places.ts'

const O_PATH = 0o10000000

/** Path relative to the workspace → what tells the same file or folder from another, and where a link leads. */
export type Names = ReadonlyMap<string, { readonly identity: string; readonly link?: string }>

/** `.git` and other watched names are not among them: what a person puts in a place holder is theirs. */
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

/** Of another command, for a name that the settings protect as well. */
function isEmptyStub(path: string): boolean {
  return isStub(path) && lstatSync(path).isDirectory() && readdirSync(path).length === 0
}

/** A link that was replaced is put back; everything else that was there is read-only. @returns a sentence for each kind of thing done */
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

function moveAside(workspace: string, path: string): string {
  const to = `${path}.refused-${crypto.randomUUID().slice(0, 8)}`
  const failure = inFolder(workspace, dirname(path), (folder) => renameSync(join(folder, basename(path)), join(folder, basename(to))))
  return `${JSON.stringify(path)} → ${failure === undefined ? JSON.stringify(to) : `FAILED, remove it by hand (${failure})`}`
}

function putBack(workspace: string, path: string, link: string): string {
  const failure = inFolder(workspace, dirname(path), (folder) => symlinkSync(link, join(folder, basename(path))))
  return `${JSON.stringify(path)}${failure === undefined ? '' : `: FAILED (${failure})`}`
}

/** Held by descriptor, and only inside: another command may be moving things about. @returns what went wrong */
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
