/** Supplies the history and summary of an agent folder to compaction, and stores the result. */

import { existsSync, statSync } from 'node:fs'
import { isObject, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { CompactionStore, Failures, Portion, SummaryAnswer } from '../conversations/compact.ts'
import type { FolderPaths } from './agent-folder.ts'
import { digestOf, linesOf, readText, textBound, withFile } from './bounded-read.ts'
import { type Disk, replaceFile } from './disk.ts'
import type { WithFolderLock } from './folder-lock.ts'
import { conversationIn, pairsIn, readHistory } from './history-file.ts'
import { type CompactionRecord, lastRecord, replace } from './replace-files.ts'

/** The first `bytes` of the history, which contain `lines` lines. */
export type FolderPortion = Portion & { readonly bytes: number; readonly lines: number; readonly source: string; readonly previous: string }

export type Lengths = {
  /** Compaction starts above this many messages and leaves `keep`. */
  readonly max: number
  readonly keep: number
  /** How many bytes go to the model at once; the rest waits for the next compaction. */
  readonly portionBytes: number
}

export type FolderStoreOptions = {
  readonly paths: FolderPaths
  readonly disk: Disk
  readonly lengths: Lengths
  readonly withFolderLock: WithFolderLock
}

export function createFolderStore({ paths, disk, lengths, withFolderLock }: FolderStoreOptions): CompactionStore<FolderPortion> {
  return {
    due: () => withFolderLock(() => due(paths, lengths)),
    failures: () => failuresIn(paths.failures),
    failed: (failures) => withFolderLock(() => replaceFile(disk, paths.failures, Buffer.from(`${JSON.stringify(failures)}\n`))),
    commit: (portion, answer) => withFolderLock(() => commit({ disk, paths }, portion, answer)),
  }
}

function due(paths: FolderPaths, { max, keep, portionBytes }: Lengths): FolderPortion | undefined {
  const pairs = pairsIn(keep)
  const { starts } = readHistory(paths.history, pairs)
  const old = starts.length - pairs
  if (2 * starts.length <= max || old < 1) return undefined
  const fitting = starts.slice(1, old + 1).filter((start) => start <= portionBytes)
  const bytes = fitting.at(-1) ?? starts[1] ?? 0
  const range = { from: 0, to: bytes }
  const { text, messages } = conversationIn(paths.history, range, Math.floor(portionBytes / 2))
  return {
    existing: existingSummary(paths.summary),
    conversation: text,
    messages,
    bytes,
    lines: withFile(paths.history, (file) => [...linesOf(file, range)].length),
    source: digestOf(paths.history, range),
    previous: digestOf(paths.summary),
  }
}

/** Refuses a summary that somebody made too long: the model would see, and keep, only a part of it. */
function existingSummary(path: string): string {
  const found = readText(path, textBound)
  if (found.state === 'missing') return ''
  if (found.state === 'read' && found.whole) return found.text
  const why = found.state === 'read' ? `has ${found.bytes} bytes, more than ${textBound}; shorten it` : `cannot be read: ${found.why}`
  throw Object.assign(new Error(`"${path}" ${why}`), { code: 'EINVAL' })
}

function commit(
  { disk, paths }: { readonly disk: Disk; readonly paths: FolderPaths },
  portion: FolderPortion,
  answer: SummaryAnswer,
): boolean {
  if (digestOf(paths.history, { from: 0, to: portion.bytes }) !== portion.source) return false
  if (digestOf(paths.summary) !== portion.previous) return false
  replace(disk, paths, {
    record: recordOf(paths, portion, answer),
    summary: textOf(answer),
    source_bytes: portion.bytes,
    archive_bytes: statSync(paths.archive, { throwIfNoEntry: false })?.size ?? 0,
  })
  if (existsSync(paths.failures)) disk.remove(paths.failures)
  return true
}

function textOf({ text }: SummaryAnswer): string {
  return `${text}\n`
}

function recordOf(paths: FolderPaths, { lines, messages, source, previous }: FolderPortion, answer: SummaryAnswer): CompactionRecord {
  const before = lastRecord(paths.log)
  const from = (before?.to_line ?? 0) + 1
  return {
    v: 1,
    at: new Date(answer.at).toISOString(),
    model: answer.model,
    from_line: from,
    to_line: from + lines - 1,
    messages,
    source_sha256: source,
    previous_sha256: previous,
    summary_sha256: sha256(textOf(answer)),
    edited: previous !== (before?.summary_sha256 ?? emptyDigest),
  }
}

const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Returns undefined for an invalid file. */
function failuresIn(path: string): Failures | undefined {
  const found = readText(path, textBound)
  if (found.state !== 'read') return undefined
  const value = parseJson(found.text)
  if (!isObject(value) || typeof value.message !== 'string') return undefined
  const [count, at] = [Number(value.count), Number(value.at)]
  return count >= 1 && Number.isFinite(at) ? { count, at, message: value.message } : undefined
}
