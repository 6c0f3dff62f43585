/** Narrows what a command changed to what the person chose, and puts the person's own text into the files that were edited. */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { sha256 } from '../../kit/sha256.ts'
import { quote } from '../../kit/text.ts'
import type { Change, Revision } from '../../runtime/changes.ts'

export type Revising = { readonly upper: string; readonly changes: readonly Change[]; readonly revision: Revision }

/**
 * Every process of the command is dead, so nobody else writes there. @returns the changes that are left, or why it is not possible: nothing
 * is revised then, but files may have the person's text already
 */
export function reviseView({ upper, changes, revision: { only, edited = new Map() } }: Revising): readonly Change[] | string {
  const known = new Map(changes.map((change) => [change.path, change]))
  const strange = [...only, ...edited.keys()].find((path) => !known.has(path))
  if (strange !== undefined) return `${quote(strange)} is not one of the changes`
  for (const [path, content] of edited) {
    const change = known.get(path)
    const problem = change && write({ upper, change, content })
    if (problem !== undefined) return problem
  }
  const chosen = new Set(only)
  return changes.filter(({ path }) => chosen.has(path)).map((change) => withContent(change, edited.get(change.path)))
}

function withContent(change: Change, content: Uint8Array | undefined): Change {
  if (content === undefined || change.after === undefined) return change
  return { ...change, after: { ...change.after, size: content.length, sha256: sha256(content) } }
}

type Writing = { readonly upper: string; readonly change: Change; readonly content: Uint8Array }

/** Writes into the file itself, which keeps its permissions and everything that the private view noted about it. */
function write({ upper, change, content }: Writing): string | undefined {
  const { path, bytes, after } = change
  if (after?.kind !== 'file') return `${quote(path)} is no file`
  const place = Buffer.concat([Buffer.from(`${upper}/`), bytes === undefined ? Buffer.from(path) : Buffer.from(bytes, 'base64')])
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(place, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) return `${quote(path)} is no file`
    if (stat.nlink > 1) return `${quote(path)} has a second name, whose content would change too`
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at, content.length - at, at)
    ftruncateSync(fd, content.length)
    return undefined
  } finally {
    closeSync(fd)
  }
}
