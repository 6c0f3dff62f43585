/** Narrows what a command changed to what the person chose, and puts the person's own text into the files that were edited. */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { sha256 } from '../../kit/sha256.ts'
import { quote } from '../../kit/text.ts'
import type { Change, Revision } from '../../runtime/changes.ts'

/** The folder with what the command wrote. */
type Upper = { readonly upper: string; readonly changes: readonly Change[]; readonly revision: Revision }

/** Writes nothing. @returns the changes that are left, or why it is not possible */
export function revisedChanges({ upper, changes, revision: { only, edited = new Map() } }: Upper): readonly Change[] | string {
  const known = new Map(changes.map((change) => [change.path, change]))
  const strange = [...only, ...edited.keys()].find((path) => !known.has(path))
  if (strange !== undefined) return `${quote(strange)} is not one of the changes`
  const chosen = new Set(only)
  const left = changes.filter(({ path }) => chosen.has(path))
  for (const change of left) {
    const problem = edited.has(change.path) ? inFile(upper, change, () => undefined) : undefined
    if (problem !== undefined) return problem
  }
  return left.map((change) => withContent(change, edited.get(change.path)))
}

/** Call it right before the changes are applied. @returns why it failed; some files may have the person's text then */
export function writeEdits({ upper, changes, revision: { edited = new Map() } }: Upper): string | undefined {
  for (const change of changes) {
    const content = edited.get(change.path)
    const problem = content && inFile(upper, change, (fd) => replaceContent(fd, content))
    if (problem !== undefined) return problem
  }
  return undefined
}

function withContent(change: Change, content: Uint8Array | undefined): Change {
  if (content === undefined || change.after === undefined) return change
  return { ...change, after: { ...change.after, size: content.length, sha256: sha256(content) } }
}

/** The file itself is written, which keeps its permissions and everything that the private view noted about it. */
function inFile(upper: string, { path, bytes, after }: Change, use: (fd: number) => void): string | undefined {
  if (after?.kind !== 'file') return `${quote(path)} is no file`
  const place = Buffer.concat([Buffer.from(`${upper}/`), bytes === undefined ? Buffer.from(path) : Buffer.from(bytes, 'base64')])
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(place, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) return `${quote(path)} is no file`
    if (stat.nlink > 1) return `${quote(path)} has a second name, whose content would change too`
    use(fd)
    return undefined
  } finally {
    closeSync(fd)
  }
}

function replaceContent(fd: number, content: Uint8Array): void {
  for (let at = 0; at < content.length; ) at += writeSync(fd, content, at, content.length - at, at)
  ftruncateSync(fd, content.length)
}
