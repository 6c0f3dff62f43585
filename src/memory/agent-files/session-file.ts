/** The session: what was said to an agent and by it since the last reset, one {"ts","role","content"} a line. */

import { existsSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject } from '../../kit/json.ts'
import { appendText, timestamp } from './append-line.ts'
import { jsonLines } from './read-lines.ts'

/** `ts` is ISO 8601 in UTC, to the second; '' where a line has none. */
export type Entry = { readonly ts: string; readonly role: string; readonly content: string }

export type Loaded = {
  readonly entries: readonly Entry[]
  /** Lines that are no entries (torn by a crash, edited), by number from 1. They stay in the file. */
  readonly unreadable: readonly number[]
}

/** In one write: a question and its answer stay together, however many write at once. @throws errno errors */
export function appendSession(file: string, said: readonly Omit<Entry, 'ts'>[], at: number): void {
  const ts = timestamp(at)
  const lines = said.map(({ role, content }) => `${JSON.stringify({ ts, role, content: content.toWellFormed() })}\n`)
  appendText(file, lines.join(''))
}

/** The last `limit` entries, all of them without it; none when there is no file. @throws errno errors */
export function loadSession(file: string, limit = Number.POSITIVE_INFINITY): Loaded {
  const entries: Entry[] = []
  const unreadable: number[] = []
  for (const { number, value } of jsonLines(file)) {
    const entry = entryOf(value)
    if (!entry) unreadable.push(number)
    else if (limit > 0) {
      entries.push(entry)
      if (entries.length > 2 * limit) entries.splice(0, entries.length - limit)
    }
  }
  return { entries: entries.slice(Math.max(0, entries.length - limit)), unreadable }
}

/** How many entries there are. @throws errno errors */
export function countSession(file: string): number {
  let count = 0
  for (const { value } of jsonLines(file)) if (entryOf(value)) count += 1
  return count
}

/**
 * Moves the file to `<ts>.jsonl` beside it; the next entry begins a new one. @returns where it lies now; undefined when there was none.
 * @throws errno errors
 */
export function archiveSession(file: string, at: number): string | undefined {
  const archive = freeName(dirname(file), new Date(at).toISOString().replaceAll(':', '-'))
  try {
    renameSync(file, archive)
    return archive
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function freeName(folder: string, stamp: string): string {
  for (let n = 1; ; n++) {
    const path = join(folder, `${stamp}${n === 1 ? '' : `-${n}`}.jsonl`)
    if (!existsSync(path)) return path
  }
}

function entryOf(value: unknown): Entry | undefined {
  if (!isObject(value)) return undefined
  const { ts = '', role, content } = value
  return typeof role === 'string' && typeof content === 'string' && typeof ts === 'string' ? { ts, role, content } : undefined
}
