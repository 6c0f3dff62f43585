/** Writes and reads what a change set is going to do or has done: one line for the set, then one line for each path. */

import { closeSync, fsyncSync, openSync, readFileSync, readSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ChangeReview, EntryState } from '../../../runtime/changes.ts'
import type { About, Side } from '../contract.ts'
import type { Identity } from '../tree/identity.ts'
import type { Pace } from '../tree/pace.ts'

/** One path: what is there now, what comes there, and how both are known again. */
export type Item = {
  readonly path: string
  readonly bytes?: string
  readonly before?: EntryState
  readonly after?: EntryState
  /** What was at the path when the plan was made. */
  readonly base?: Identity
  /** What the path will hold, while it still is in the other tree. */
  readonly source?: Identity
}

/** @returns what was at the path, with the mode that it had at the moment of the plan */
export function original({ before, base }: Item): EntryState | undefined {
  return before && { ...before, mode: base?.mode ?? before.mode }
}

export type Header = {
  readonly version: 1
  readonly workspace: string
  readonly about: About
  readonly review?: ChangeReview
  /** The side that the paths have afterwards. */
  readonly to: Side
  readonly items: number
  /** Paths of the whole set, and how many of them are changed when this is done. */
  readonly count: number
  readonly changed: number
  readonly bytes: number
  /** Name of a temporary file in the workspace, needed where nothing can be moved between two file systems. */
  readonly temporary: string
}

export type Plan = { readonly header: Header; readonly items: readonly Item[] }

const LINES_AT_ONCE = 500
const LONGEST_HEADER = 262_144

type GivenHeader = Omit<Header, 'version' | 'temporary' | 'to'> & { readonly to?: Side }

export function headerOf(given: GivenHeader): Header {
  return { version: 1, to: 'after', temporary: `.braidclaw-${crypto.randomUUID()}.tmp`, ...given }
}

/** @returns a small plan as the text of its file */
export function planText({ header, items }: { readonly header: GivenHeader; readonly items: readonly Item[] }): string {
  return [headerOf(header), ...items].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** Writes all lines under a temporary name. @returns its path @throws the system's error */
export async function writePlan(folder: string, { header, items }: Plan, pace: Pace): Promise<string> {
  const path = join(folder, 'plan.tmp')
  const file = openSync(path, 'w', 0o600)
  try {
    writeAll(file, `${JSON.stringify(header)}\n`)
    for (let at = 0; at < items.length; at += LINES_AT_ONCE) {
      writeAll(
        file,
        items
          .slice(at, at + LINES_AT_ONCE)
          .map((item) => `${JSON.stringify(item)}\n`)
          .join(''),
      )
      await pace()
    }
  } finally {
    closeSync(file)
  }
  return path
}

/** A full disk makes a write short without an error; only the next write fails. */
function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}

export function flushFile(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

export function discard(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It is not there.
  }
}

/** @throws when it is no plan */
export function readPlan(path: string): Plan {
  const [first = '', ...lines] = readFileSync(path, 'utf8').split('\n')
  const items = lines.filter((line) => line !== '').map((line): Item => JSON.parse(line))
  const header = parseHeader(first)
  if (items.length !== header.items) throw new Error(`${path} has ${items.length} paths of ${header.items}`)
  return { header, items }
}

/** @returns undefined when the file does not exist @throws when it is no plan */
export function readHeader(path: string): Header | undefined {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const buffer = Buffer.alloc(LONGEST_HEADER)
    const text = buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0))
    return parseHeader(text.slice(0, text.indexOf('\n')))
  } finally {
    closeSync(file)
  }
}

function parseHeader(line: string): Header {
  const header: Header = JSON.parse(line)
  if (header.version !== 1) throw new Error('a newer BraidClaw wrote it')
  return header
}

export function renamePlan(folder: string, from: string, to: string): void {
  renameSync(join(folder, from), join(folder, to))
}
