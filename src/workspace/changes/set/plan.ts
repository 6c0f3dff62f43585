/** Writes and reads what a change set is going to do or has done: one line for the set, then one line for each path. */

import { closeSync, fsyncSync, openSync, readFileSync, readSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, attempt } from '../../../kit/errors.ts'
import type { ChangeReview, EntryState } from '../../../runtime/changes.ts'
import type { About, Side } from '../contract.ts'
import type { Identity } from '../tree/entry.ts'
import type { Pace } from '../tree/tree.ts'

/** One path: its present entry, its new entry, and how to recognise both later. */
export type Item = {
  readonly path: string
  readonly bytes?: string
  readonly before?: EntryState
  readonly after?: EntryState
  /** The entry at the path when the plan was made. */
  readonly base?: Identity
  /** The new entry, while it is still in the other tree. */
  readonly source?: Identity
  /** Digest of the entries of the new git index: git refreshes the times in it at every status. */
  readonly entries?: string
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
  /** Device and inode of the workspace. */
  readonly place?: string
  /** See Admission. */
  readonly undoable?: readonly string[]
  /** Name of a temporary file in the workspace, needed where nothing can be moved between two file systems. */
  readonly temporary: string
}

export type MovePlan = { readonly header: Header; readonly items: readonly Item[] }

const LINES_AT_ONCE = 500
/** Most headers are shorter; a longer one is read again as a whole. */
const USUAL_HEADER = 4_096
const LONGEST_HEADER = 1_048_576

type GivenHeader = Omit<Header, 'version' | 'temporary' | 'to'> & { readonly to?: Side }

export function headerOf(given: GivenHeader): Header {
  return { version: 1, to: 'after', temporary: `.braidclaw-${crypto.randomUUID()}.tmp`, ...given }
}

/** @returns a small plan as the text of its file */
export function planText({ header, items }: { readonly header: GivenHeader; readonly items: readonly Item[] }): string {
  return linesFor([headerOf(header), ...items])
}

function linesFor(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('')
}

/** Writes all lines under a temporary name. @returns its path @throws the system's error */
export async function writePlan(folder: string, { header, items }: MovePlan, pace: Pace): Promise<string> {
  const path = join(folder, 'plan.tmp')
  const file = openSync(path, 'w', 0o600)
  using _end = atEnd(() => closeSync(file))
  writeAll(file, linesFor([header]))
  for (let at = 0; at < items.length; at += LINES_AT_ONCE) {
    writeAll(file, linesFor(items.slice(at, at + LINES_AT_ONCE)))
    await pace()
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
  using _end = atEnd(() => closeSync(file))
  fsyncSync(file)
}

export function discard(path: string): void {
  attempt(() => unlinkSync(path))
}

/** @throws when it is not a plan */
export function readPlan(path: string): MovePlan {
  const { header, lines } = linesOf(path)
  return { header, items: lines.map(parseItem) }
}

/** Does the same as readPlan without blocking the process. */
export async function loadPlan(path: string, pace: Pace): Promise<MovePlan> {
  const { header, lines } = linesOf(path)
  const items: Item[] = []
  for (const line of lines) {
    items.push(parseItem(line))
    const pause = pace()
    if (pause !== undefined) await pause
  }
  return { header, items }
}

function linesOf(path: string): { readonly header: Header; readonly lines: readonly string[] } {
  const [first = '', ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n')
  const header = parseHeader(first)
  if (lines.length !== header.items) throw new Error(`${path} has ${lines.length} paths of ${header.items}`)
  return { header, lines }
}

function parseItem(line: string): Item {
  return JSON.parse(line)
}

/** @returns undefined when the file does not exist @throws when it is not a plan */
export function readHeader(path: string): Header | undefined {
  const file = attempt(() => openSync(path, 'r'))
  if (file === undefined) return undefined
  using _end = atEnd(() => closeSync(file))
  return parseHeader(firstLine(file, USUAL_HEADER) ?? firstLine(file, LONGEST_HEADER) ?? '')
}

function firstLine(file: number, most: number): string | undefined {
  const buffer = Buffer.alloc(most)
  const end = buffer.subarray(0, readSync(file, buffer, 0, most, 0)).indexOf(10)
  return end < 0 ? undefined : buffer.toString('utf8', 0, end)
}

function parseHeader(line: string): Header {
  const header: Header = JSON.parse(line)
  if (header.version !== 1) throw new Error('a newer BraidClaw wrote it')
  return header
}

export function renamePlan(folder: string, from: string, to: string): void {
  renameSync(join(folder, from), join(folder, to))
}
