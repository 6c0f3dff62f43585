/** Writes each committed line of the journal once to the agents' files, and journals lines that other programs wrote there. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../kit/sha256.ts'
import type { Clock, Log, Redact, RunAgent, RunIdentity } from '../runtime/port.ts'
import { folderPaths } from './agent-files/agent-folder.ts'
import { type AgentFile, agentFiles, fileNames } from './agent-files/agent-paths.ts'
import type { FileLine } from './agent-files/bounded-read.ts'
import { digestOf } from './agent-files/bounded-read.ts'
import { appendText, catchDiskError, diskErrorMessage, realDisk } from './agent-files/disk.ts'
import { type FileMark, freshMark, lookAt, read, tailAt } from './agent-files/file-mark.ts'
import { folderLock } from './agent-files/folder-lock.ts'
import { writePointer } from './agent-files/session-file.ts'
import { createFileMarks, type PendingRun } from './file-marks.ts'
import type { Journal } from './journal/journal.ts'
import { agentText, folderKey } from './journal/journal.ts'
import { type ForeignLine, foreignLine } from './journal/journal-entry.ts'
import { isAlive, thisProcess } from './journal/process-owner.ts'
import { entriesAfter, type JournalLine, linesInJournal, linesOfRun, matchesEnd } from './journal-lines.ts'
import type { Store } from './store.ts'

export type Projector = {
  /** Call it in the transaction of a run's first event, before that event. File errors are logged once, and the turn continues. */
  begin(run: RunIdentity, options: { readonly now: Clock; readonly redact: Redact }): void
  /** Writes the lines of a commit after it. Never throws because of file errors. */
  flush(run: RunIdentity): void
  /** `step` archives the session: earlier messages are not written to the new session file. Throws what `step` throws. */
  reset<T>(agent: RunAgent, step: () => T): T
  /** Call it when this process will commit nothing more of this run. */
  drop(run: RunIdentity): void
}

type OpenRun = { through: number; over: boolean; readonly next: ReturnType<typeof linesOfRun> }

export function createProjector({
  store,
  journal,
  log,
}: {
  readonly store: Store
  readonly journal: Journal
  readonly log: Log
}): Projector {
  const marks = createFileMarks(store)
  const owner = thisProcess()
  /** The running runs of this process. */
  const under = new Map<string, OpenRun>()
  const complained = new Set<string>()

  function keep(folder: string, step: () => void): void {
    try {
      step()
    } catch (error) {
      const why = diskErrorMessage(error)
      if (why === undefined) throw error
      if (!complained.has(folder)) log('warn', 'the files of the agent cannot be written', { agent: folder, why })
      complained.add(folder)
    }
  }

  function begin(run: RunIdentity, { now, redact }: { readonly now: Clock; readonly redact: Redact }): void {
    const { agent, runId } = run
    if (!agent) return
    const [key, at] = [folderKey(store.path, agent.folder), now()]
    const pending = marks.pending(key)
    for (const file of agentFiles) keep(agent.folder, () => takeIn({ run, agent, key, file, pending, at, redact }))
    for (const each of pending) marks.settle(each)
    marks.enter(runId, key)
    under.set(runId, { through: 0, over: false, next: linesOfRun(store.path, runId, agentText(store.path, agent)) })
  }

  type FileIntake = {
    readonly run: RunIdentity
    readonly agent: RunAgent
    readonly key: string
    readonly file: AgentFile
    readonly pending: readonly PendingRun[]
    readonly at: number
    readonly redact: Redact
  }

  function takeIn({ run, agent, key, file, pending, at, redact }: FileIntake): void {
    const path = join(agent.folder, fileNames[file])
    const known = marks.get(key, file)
    const mark = known ?? freshMark
    const found = lookAt(path, mark)
    const isOlder = !known && found.size > 0 && marks.isOlder()
    const others = isOlder ? [] : foreignLines(found.lines ?? [], file, pending)
    const end = found.replaced ? matchesEnd(store, { key, file, texts: textsOf(found.lines ?? []) }) : undefined
    const unrecorded = end !== undefined ? [] : found.replaced ? without(others, key, file) : others
    const first = found.replaced ? 0 : mark.lines
    for (const { line, text } of unrecorded) {
      const body: ForeignLine & { readonly type: string } = { type: foreignLine, file, line: first + line, sha256: sha256(text), text }
      journal.append({ run, kind: 'note', type: foreignLine, at, body: redact(body) })
    }
    const exact = others.every(({ exact, text }) => exact && redact(text) === text) && found.lines !== undefined
    const startsOver = isOlder || found.replaced || !exact
    const size = { bytes: found.size, lines: first + (found.lines?.length ?? 0), tail: found.tail }
    if (end !== undefined) marks.put(key, file, { ...freshMark, ...size, since: end })
    else marks.put(key, file, startsOver ? { ...size, ...base(path, found.size, file, pending) } : { ...mark, ...size })
    if (found.lines === undefined)
      log('warn', 'lines of other programs not taken in: too many at once', { path, bytes: found.size - mark.bytes })
    else if (unrecorded.length > 0) log('info', 'lines of other programs taken in', { path, lines: unrecorded.length })
    if (found.replaced) acceptReplacement(file, pending)
    else repair(agent, file, pending)
  }

  /** When somebody replaced the file, its old lines are not restored. */
  function acceptReplacement(file: AgentFile, pending: readonly PendingRun[]): void {
    for (const run of pending) if (!isUnderWay(run)) run.seen[file] += missingIn(file, run).length
  }

  /** Tells whether the run's own process will write the missing lines. */
  function isUnderWay({ runId, owner: whose }: PendingRun): boolean {
    return whose === owner ? under.has(runId) : isAlive(whose)
  }

  /** Starts accounting here: the current content of the file stays unchanged. */
  function base(path: string, size: number, file: AgentFile, pending: readonly PendingRun[]): Omit<FileMark, 'bytes' | 'lines' | 'tail'> {
    return {
      since: marks.lastSeq(),
      base: size,
      baseSha256: digestOf(path, { from: 0, to: size }),
      open: Object.fromEntries(pending.map(({ runId, seen }) => [runId, seen[file]])),
    }
  }

  /** Drops, for a replaced file, the lines that the journal already contains. */
  function without(others: readonly ForeignText[], key: string, file: AgentFile): readonly ForeignText[] {
    if (others.length === 0) return others
    const recorded = new Set<string>()
    for (const line of linesInJournal(store, key)) if (line.file === file) recorded.add(line.text)
    return others.filter(({ text }) => !recorded.has(text))
  }

  /** Writes the lines that a dead process committed but did not write. */
  function repair(agent: RunAgent, file: AgentFile, pending: readonly PendingRun[]): void {
    for (const run of pending) {
      const missing = missingIn(file, run).map(({ text }) => text)
      if (missing.length > 0 && !isUnderWay(run)) write(agent.folder, file, missing)
    }
  }

  function flush(run: RunIdentity): void {
    const open = under.get(run.runId)
    const { agent } = run
    if (!open || !agent) return
    keep(agent.folder, () => {
      const rows = entriesAfter(store, run.runId, open.through)
      const lines = rows.flatMap(open.next)
      open.through = rows.at(-1)?.seq ?? open.through
      open.over = rows.some(({ type }) => type === 'finish')
      if (rows.some(({ type }) => type === 'run.start'))
        keep(agent.folder, () => writePointer(join(agent.folder, 'sessions', agent.pointer), run.conversationId))
      for (const file of agentFiles) {
        const texts = lines.flatMap((line) => (line.file === file && !line.foreign ? [line.text] : []))
        if (texts.length > 0) keep(agent.folder, () => write(agent.folder, file, texts))
      }
    })
    if (!under.get(run.runId)?.over) return
    confirm(run.runId, agent)
  }

  /** Confirms new lines at once, so that a file that somebody deletes afterwards is not restored. */
  function confirm(runId: string, agent: RunAgent): void {
    under.delete(runId)
    const key = folderKey(store.path, agent.folder)
    const confirmed = catchDiskError(() =>
      store.writeLater(() => {
        const pending = marks.pending(key)
        for (const file of agentFiles) catchDiskError(() => confirmFile(agent, key, file, pending))
        for (const each of pending) marks.settle(each)
      }),
    )
    // Another process holds the lock: the next turn confirms the lines.
    if (confirmed) log('debug', 'the files of the agent are looked at later', { agent: agent.folder, why: confirmed.message })
  }

  /** Confirms lines up to the first line of another program. */
  function confirmFile(agent: RunAgent, key: string, file: AgentFile, pending: readonly PendingRun[]): void {
    const mark = marks.get(key, file)
    if (!mark) return
    const path = join(agent.folder, fileNames[file])
    const { lines = [], replaced } = read(path, mark)
    if (replaced) return
    const firstForeign = lines.findIndex((line) => line.torn || foreignLines([line], file, pending).length > 0)
    const own = firstForeign === -1 ? lines : lines.slice(0, firstForeign)
    const bytes = own.at(-1)?.end
    if (bytes !== undefined) marks.put(key, file, { ...mark, bytes, lines: mark.lines + own.length, tail: tailAt(path, bytes) })
  }

  function write(folder: string, file: AgentFile, texts: readonly string[]): void {
    const append = () => appendText(join(folder, fileNames[file]), texts.map((text) => `${text}\n`).join(''))
    // Takes the folder's lock, because a compaction replaces the history file.
    if (file === 'history' && existsSync(folder)) folderLock({ paths: folderPaths(folder), disk: realDisk, log })(append)
    else append()
  }

  function reset<T>(agent: RunAgent, step: () => T): T {
    return store.write(() => {
      const key = folderKey(store.path, agent.folder)
      const done = step()
      const since = marks.lastSeq()
      const open = Object.fromEntries(marks.pending(key).map(({ runId, seen }) => [runId, seen.session]))
      marks.put(key, 'session', { ...freshMark, since, open })
      marks.put(key, agent.pointer, { ...freshMark, since })
      return done
    })
  }

  return { begin, flush, reset, drop: ({ runId }) => void under.delete(runId) }
}

function textsOf(lines: readonly FileLine[]): readonly string[] {
  return lines.flatMap(({ text = '' }) => (text.trim() === '' ? [] : [text]))
}

function missingIn(file: AgentFile, { lines, seen }: PendingRun): readonly JournalLine[] {
  return lines.filter((line) => line.file === file && !line.foreign && line.number >= seen[file])
}

/** `exact`: the text is the complete, unchanged line. `line` counts from 1. */
type ForeignText = { readonly line: number; readonly text: string; readonly exact: boolean }

/** Returns the lines of the file that no pending run produced; counts the other lines as seen. */
function foreignLines(lines: readonly FileLine[], file: AgentFile, pending: readonly PendingRun[]): readonly ForeignText[] {
  return lines.flatMap(({ text, torn }, at) => {
    if (text?.trim() === '') return []
    const source = pending.find((run) => run.next(file) === text)
    if (source) source.seen[file] += 1
    return source ? [] : [{ line: at + 1, text: text ?? '', exact: text !== undefined && !torn && !text.includes('\ufffd') }]
  })
}
