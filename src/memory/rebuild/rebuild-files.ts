/** Checks the files of agents, and the pointers to their conversations, against the journal, or rebuilds them from it. */

import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type AgentFile, agentFiles, fileNames } from '../agent-files/agent-paths.ts'
import { bytesOf, digestOf, linesOf, withOwnFile } from '../agent-files/bounded-read.ts'
import { catchDiskError, realDisk, replaceFile } from '../agent-files/disk.ts'
import { type FileMark, freshMark, tailAt } from '../agent-files/file-mark.ts'
import { forgetPointer, readPointer, writePointer } from '../agent-files/session-file.ts'
import { createFileMarks, type PendingRun } from '../file-marks.ts'
import { folderOfKey } from '../journal/journal.ts'
import { isAlive } from '../journal/process-owner.ts'
import { type JournalLine, linesInJournal, matchesEnd } from '../journal-lines.ts'
import type { Store } from '../store.ts'

/** `untaken`: lines of other programs that the next turn will journal. */
type FilesCheck = { readonly files: number; readonly untaken: number; readonly difference?: string }

export type AgentFilesCheck = {
  check(): FilesCheck
  /** Rewrites the files that differ. @returns the files written, and descriptions of what could not be restored */
  rebuild(): { readonly written: readonly string[]; readonly lost: readonly string[] }
}

/** The content of a file after its first `base` bytes, compared with the expected lines. */
type FileComparison = {
  readonly path: string
  readonly mark: FileMark
  readonly lines: readonly { readonly text: string; readonly end: number }[]
  readonly expected: readonly JournalLine[]
  readonly difference?: string
  /** From this byte on, the file contains lines that were not journalled yet. */
  readonly untakenFrom: number
  readonly untaken: number
  readonly isBaseLost: boolean
}

export function createFilesCheck(store: Store): AgentFilesCheck {
  const marks = createFileMarks(store)

  function folders(): readonly string[] {
    return store
      .sql<{ folder: string }, []>(`SELECT DISTINCT folder FROM agent_files WHERE folder <> ''`)
      .all()
      .map(({ folder }) => folder)
  }

  function compareFolder(key: string, pending: readonly PendingRun[]): readonly (readonly [AgentFile, FileComparison])[] {
    const expected = new Map(agentFiles.map((file) => [file, [] as JournalLine[]]))
    for (const line of linesInJournal(store, key)) expected.get(line.file)?.push(line)
    return agentFiles.flatMap((file) => {
      const mark = marks.get(key, file)
      return mark ? [[file, compareFile({ key, file, mark, all: expected.get(file) ?? [], pending })] as const] : []
    })
  }

  type FileToCompare = {
    readonly key: string
    readonly file: AgentFile
    readonly mark: FileMark
    readonly all: readonly JournalLine[]
    readonly pending: readonly PendingRun[]
  }

  function compareFile({ key, file, mark, all, pending }: FileToCompare): FileComparison {
    const path = join(folderOfKey(store.path, key), fileNames[file])
    const base = baseOf(path, mark)
    const lines = linesFrom(path, base.ok ? mark.base : 0)
    const end = lines.at(-1)?.end ?? 0
    const cut = end < mark.bytes ? matchesEnd(store, { key, file, texts: lines.map(({ text }) => text) }) : undefined
    if (cut !== undefined)
      return { path, mark: { ...freshMark, since: cut }, lines, expected: all.filter(({ seq }) => seq > cut), ...whole(end) }
    const expected = all.filter((line) => isAfterMark(line, mark))
    const found = missingAndExtra(lines, expected)
    const owed = new Set(pending.map(({ runId }) => runId))
    const missing = found.missing.find(
      ({ runId, number }) => !owed.has(runId) || number < (pending.find((run) => run.runId === runId)?.seen[file] ?? 0),
    )
    const extra = found.extra.find((at) => (lines[at]?.end ?? 0) <= mark.bytes)
    const untaken = found.extra.filter((at) => (lines[at]?.end ?? 0) > mark.bytes)
    const difference =
      base.message || (missing ? lineMissing(missing) : extra === undefined ? '' : `line ${extra + 1} is not in the journal`)
    const untakenFrom = lines[(untaken[0] ?? lines.length) - 1]?.end ?? (base.ok ? mark.base : 0)
    return {
      path,
      mark,
      lines,
      expected,
      untaken: untaken.length,
      untakenFrom,
      isBaseLost: !base.ok,
      ...(difference ? { difference: `${path}: ${difference}` } : {}),
    }
  }

  function compareAll(): FilesCheck {
    let [files, untaken] = [0, 0]
    let difference: string | undefined
    for (const key of folders()) {
      difference ??= pointerDifference(store, key)
      for (const [, each] of compareFolder(key, marks.pending(key))) {
        files += 1
        untaken += each.untaken
        difference ??= each.difference
      }
    }
    return { files, untaken, difference }
  }

  /** Other processes may write meanwhile, so a difference counts only if it still exists while the write lock is held. */
  function check(): FilesCheck {
    const first = compareAll()
    return first.difference === undefined ? first : store.write(compareAll)
  }

  function rebuild() {
    const [written, lost]: [string[], string[]] = [[], []]
    store.write(() => {
      for (const key of folders()) {
        const pending = marks.pending(key)
        for (const [file, each] of compareFolder(key, pending)) {
          if (each.difference === undefined) continue
          const outcome = catchDiskError(() => ({ ok: true as const, mark: writeAnew(each, file, pending) }))
          if (outcome.ok) marks.put(key, file, outcome.mark)
          if (outcome.ok) written.push(each.path)
          if (!outcome.ok) lost.push(`${each.path}: ${outcome.message}`)
          else if (each.isBaseLost) lost.push(`${each.path}: its first ${each.mark.base} bytes, which no journal tells`)
        }
        for (const each of pending) marks.settle(each)
        written.push(...writePointers(store, key))
      }
    })
    return { written, lost }
  }

  return { check, rebuild }
}

function lineMissing({ runId, seq }: JournalLine): string {
  return `a line of run ${runId} is missing (journal entry ${seq})`
}

const whole = (end: number) => ({ untaken: 0, untakenFrom: end, isBaseLost: false })

function isAfterMark({ seq, runId, number, foreign }: JournalLine, { since, open }: FileMark): boolean {
  if (seq > since) return true
  const before = open[runId]
  return before !== undefined && !foreign && number >= before
}

function baseOf(path: string, { base, baseSha256 }: FileMark): { readonly ok: boolean; readonly message: string } {
  if (base === 0) return { ok: true, message: '' }
  const size = withOwnFile(path, (_, size) => size)
  if (size === undefined) return { ok: false, message: 'it is gone' }
  if (size < base) return { ok: false, message: `it has ${size} bytes, but it had ${base}` }
  const isSame = baseSha256 === '' || digestOf(path, { from: 0, to: base }) === baseSha256
  return isSame ? { ok: true, message: '' } : { ok: false, message: `its first ${base} bytes are not as they were` }
}

function linesFrom(path: string, from: number): readonly { readonly text: string; readonly end: number }[] {
  const lines = withOwnFile(path, (file, size) => [...linesOf(file, { from: Math.min(from, size), to: size })]) ?? []
  return lines.flatMap(({ text = '', end }) => (text.trim() === '' ? [] : [{ text, end }]))
}

/** Ignores the order, because concurrent processes may write lines in another order than the journal. */
function missingAndExtra(lines: readonly { readonly text: string }[], expected: readonly JournalLine[]) {
  const due = new Map<string, JournalLine[]>()
  for (const line of expected) {
    const same = due.get(line.text)
    if (same) same.push(line)
    else due.set(line.text, [line])
  }
  const extra = lines.flatMap(({ text }, at) => (due.get(text)?.shift() ? [] : [at]))
  return { extra, missing: [...due.values()].flat() }
}

/**
 * Writes the expected lines between the base and the lines not journalled yet. Leaves out lines that a living process is about to write.
 * @throws errno errors
 */
function writeAnew(
  { path, mark, lines, expected, untakenFrom, isBaseLost }: FileComparison,
  file: AgentFile,
  pending: readonly PendingRun[],
): FileMark {
  const alive = new Set(pending.flatMap(({ runId, owner }) => (isAlive(owner) ? [runId] : [])))
  const there = new Set(lines.map(({ text }) => text))
  const due = expected.filter(({ text, runId }) => there.has(text) || !alive.has(runId))
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const [head, tail] = readEnds(path, isBaseLost ? 0 : mark.base, untakenFrom)
  const middle = Buffer.from(due.map(({ text }) => `${text}\n`).join(''))
  replaceFile(realDisk, path, Buffer.concat([head, middle, tail]))
  for (const run of pending)
    run.seen[file] += due.filter(({ runId, number, foreign }) => runId === run.runId && !foreign && number >= run.seen[file]).length
  const bytes = head.length + middle.length
  const base = isBaseLost ? { base: 0, baseSha256: freshMark.baseSha256 } : {}
  return { ...mark, ...base, bytes, lines: head.toString('latin1').split('\n').length - 1 + due.length, tail: tailAt(path, bytes) }
}

function readEnds(path: string, base: number, from: number): readonly [Buffer, Buffer] {
  const ends = withOwnFile(path, (file, size) => {
    return [bytesOf(file, { from: 0, to: base }), bytesOf(file, { from: Math.max(from, base), to: size })] as const
  })
  return ends ?? [Buffer.alloc(0), Buffer.alloc(0)]
}

/** `due` is undefined after a reset: then the file must not exist. */
export type Pointer = { readonly path: string; readonly due: string | undefined }

/** Returns the pointer files of all agents. */
export function allPointers(store: Store): readonly Pointer[] {
  const keys = store.sql<{ key: string }, []>("SELECT DISTINCT agent ->> 'folder' AS key FROM runs WHERE agent IS NOT NULL")
  return keys.all().flatMap(({ key }) => [...pointersOf(store, key)])
}

/** Yields for each pointer file the conversation it should name: the conversation of the last run, unless the session was reset since. */
function* pointersOf(store: Store, key: string): Generator<Pointer> {
  const rows = store.sql<{ pointer: string; runId: string; conversationId: string; at: number }, [string]>(
    `SELECT agent ->> 'pointer' AS pointer, run_id AS runId, conversation_id AS conversationId, max(rowid) AS at
     FROM runs WHERE agent ->> 'folder' = ? GROUP BY pointer`,
  )
  const first = store.sql<{ seq: number | null }, [string]>('SELECT min(seq) AS seq FROM journal WHERE run_id = ?')
  const reset = store.sql<{ since: number }, [string, string]>('SELECT since FROM agent_files WHERE folder = ? AND file = ?')
  for (const { pointer, runId, conversationId } of rows.all(key)) {
    const isReset = (reset.get(key, pointer)?.since ?? -1) >= (first.get(runId)?.seq ?? 0)
    yield { path: join(folderOfKey(store.path, key), 'sessions', pointer), due: isReset ? undefined : conversationId }
  }
}

function pointerDifference(store: Store, key: string): string | undefined {
  const wrong = [...pointersOf(store, key)].find(({ path, due }) => safePointer(path) !== due)
  return wrong && `${wrong.path}: it does not name the conversation ${wrong.due ?? 'of a session that was reset'}`
}

function safePointer(path: string): string | undefined {
  try {
    return readPointer(path)
  } catch {
    return 'unreadable'
  }
}

function writePointers(store: Store, key: string): readonly string[] {
  return [...pointersOf(store, key)].flatMap(({ path, due }) => {
    if (safePointer(path) === due) return []
    if (due === undefined) forgetPointer(path)
    else writePointer(path, due)
    return [path]
  })
}
