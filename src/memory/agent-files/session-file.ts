/**
 * Reads and writes the files of an agent's session: all messages since the last reset, one {"ts","role","content"} per line; the log; and
 * the pointer to the conversation that the session continues.
 */

import { closeSync, constants, existsSync, fstatSync, ftruncateSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd, unlessMissing } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { linesOf, openRegular } from './bounded-read.ts'
import { appendText, openMade, timestamp } from './disk.ts'

/** `ts` is ISO 8601 in UTC, to the second; '' where a line has none. */
export type SessionEntry = { readonly ts: string; readonly role: string; readonly content: string }

export type Loaded = {
  readonly entries: readonly SessionEntry[]
  /** Line numbers, from 1, of lines that are not entries (cut short by a crash, edited). They stay in the file. */
  readonly unreadable: readonly number[]
}

/** Formats one {"ts","role","content"}. */
export function sessionLine({ role, content }: Omit<SessionEntry, 'ts'>, at: number): string {
  return JSON.stringify({ ts: timestamp(at), role, content: content.toWellFormed() })
}

/** Writes once: a question and its answer stay together even with concurrent writers. @throws errno errors */
export function appendSession(file: string, entries: readonly Omit<SessionEntry, 'ts'>[], at: number): void {
  appendText(file, entries.map((entry) => `${sessionLine(entry, at)}\n`).join(''))
}

/** Returns the last `limit` entries, or all without a limit; no entries when there is no file. @throws errno errors */
export function loadSession(file: string, limit = Number.POSITIVE_INFINITY): Loaded {
  const entries: SessionEntry[] = []
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

/** Returns the number of entries. @throws errno errors */
export function countSession(file: string): number {
  let count = 0
  for (const { value } of jsonLines(file)) if (entryOf(value)) count += 1
  return count
}

/**
 * Moves the file to `<ts>.jsonl` beside it; the next entry starts a new file. @returns its new path; undefined when there was no file.
 * @throws errno errors
 */
export function archiveSession(file: string, at: number): string | undefined {
  const archive = freeName(dirname(file), new Date(at).toISOString().replaceAll(':', '-'))
  return unlessMissing(() => {
    renameSync(file, archive)
    return archive
  })
}

function freeName(folder: string, stamp: string): string {
  for (let n = 1; ; n++) {
    const path = join(folder, `${stamp}${n === 1 ? '' : `-${n}`}.jsonl`)
    if (!existsSync(path)) return path
  }
}

function entryOf(value: unknown): SessionEntry | undefined {
  if (!isObject(value)) return undefined
  const { ts = '', role, content } = value
  return typeof role === 'string' && typeof content === 'string' && typeof ts === 'string' ? { ts, role, content } : undefined
}

/** `value` is undefined for a line that is invalid JSON or longer than 64 MiB. Empty lines are skipped, but counted. */
type JsonLine = { readonly number: number; readonly value: unknown }

const maxLineBytes = 64 * 1024 * 1024

/**
 * Reads JSON-lines files that other processes may write, a crash may have cut short, and people may have edited. Treats a missing file
 * as empty.
 * @throws errno errors
 */
function* jsonLines(path: string): Generator<JsonLine> {
  const file = unlessMissing(() => openRegular(path))
  if (file === undefined) return
  using _end = atEnd(() => closeSync(file))
  let number = 0
  for (const { text } of linesOf(file, { from: 0, to: Number.MAX_SAFE_INTEGER }, maxLineBytes)) {
    number += 1
    if (text?.trim() !== '') yield { number, value: parseJson(text ?? '') }
  }
}

/** A line of an agent's log, agent.jsonl. */
type Trace = { readonly agent: string; readonly event: string; readonly message: string }

/** Formats one {"ts","agent","event","message"}. */
export function traceLine({ agent, event, message }: Trace, at: number): string {
  return JSON.stringify({ ts: timestamp(at), agent, event, message: message.toWellFormed() })
}

/** Appends to the log. @throws errno errors */
export function appendTrace(file: string, trace: Trace, at: number): void {
  appendText(file, `${traceLine(trace, at)}\n`)
}

/** Returns undefined when there is no file, or no valid id in it. @throws errno errors except ENOENT */
export function readPointer(path: string): string | undefined {
  const id = unlessMissing(() => readFileSync(path, 'utf8').trim())
  return id !== undefined && /^\w{1,100}$/.test(id) ? id : undefined
}

/**
 * Overwrites the file with one write smaller than a disk sector, so a concurrent reader sees either the old or the new id. @throws errno
 * errors
 */
export function writePointer(path: string, id: string): void {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = openMade(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
  using _end = atEnd(() => closeSync(file))
  const bytes = new TextEncoder().encode(`${id}\n`)
  if (writeSync(file, bytes, 0, bytes.length, 0) < bytes.length)
    throw Object.assign(new Error(`"${path}": the disk is full`), { code: 'ENOSPC' })
  if (fstatSync(file).size > bytes.length) ftruncateSync(file, bytes.length)
}

export function forgetPointer(path: string): void {
  rmSync(path, { force: true })
}
