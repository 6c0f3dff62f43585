/** Replaces an agent's summary and history together: after a crash at any step, both are old or both are new. */

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEnd, unlessMissing } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import type { FolderPaths } from './agent-folder.ts'
import { bytesOf, digestOf, endsTorn, linesOf, piecesOf, readText, withFile } from './bounded-read.ts'
import { type Disk, modeOf, replaceFile, writeAll, writeFile } from './disk.ts'

/** The result of a compaction that a crash interrupted. */
type CrashOutcome = 'nothing' | 'completed' | 'discarded'

/** In bytes; longer than any marker we write. */
const markerBound = 1 << 20

/**
 * The marker is the commit point: after its rename the compaction counts as done, and any process may complete the replacement; before it,
 * nothing changes. `rest` exists while the history is still the old one. Call it under the folder's lock. @throws errno errors: before the
 * commit point nothing has changed, after it `settle` continues
 */
export function replace(disk: Disk, paths: FolderPaths, marker: Marker): void {
  // Written before the commit point, so that a full disk fails while nothing has changed.
  writeRest(disk, paths, marker.source_bytes)
  replaceFile(disk, paths.marker, Buffer.from(`${JSON.stringify(marker)}\n`))
  finish(disk, paths, marker)
}

/** Completes or discards a compaction that a crash interrupted. Call it under the folder's lock. @throws errno errors */
export function settle(disk: Disk, paths: FolderPaths): CrashOutcome {
  if (existsSync(paths.pending) && settlePending(disk, paths)) return 'completed'
  if (!existsSync(paths.marker)) {
    for (const path of [paths.rest, ...drafts(paths)]) if (existsSync(path)) disk.remove(path)
    return 'nothing'
  }
  const found = readText(paths.marker, markerBound)
  const marker = found.state === 'read' && found.whole ? markerIn(found.text) : undefined
  if (!marker || !stillMeant(paths, marker)) {
    discard(disk, paths)
    return 'discarded'
  }
  finish(disk, paths, marker)
  return 'completed'
}

/** Completes the pending change first: planck would do so at its next start and overwrite anything added since. */
function settlePending(disk: Disk, { pending, summary, history }: FolderPaths): boolean {
  const found: unknown = withFile(pending, (file, size) => parseJson(bytesOf(file, { from: 0, to: size }).toString()))
  const [text, lines]: unknown[] = Array.isArray(found) ? found : []
  if (typeof text !== 'string' || typeof lines !== 'string') return false
  replaceFile(disk, summary, Buffer.from(text))
  replaceFile(disk, history, Buffer.from(lines))
  disk.remove(pending)
  disk.syncFolder(dirname(pending))
  return true
}

function drafts({ marker, summary, pins, failures }: FolderPaths): string[] {
  return [marker, summary, pins, failures].map((path) => `${path}.next`)
}

/**
 * Somebody may have edited history or summary since the crash. While the old history is complete, discarding the new summary loses nothing.
 */
function stillMeant(paths: FolderPaths, { record, source_bytes }: Marker): boolean {
  if (!existsSync(paths.rest)) return true
  const summary = digestOf(paths.summary)
  const known = summary === record.previous_sha256 || summary === record.summary_sha256
  return known && digestOf(paths.history, { from: 0, to: source_bytes }) === record.source_sha256
}

/** Each step may run again. The summary is replaced first: until the history follows, the worst case is that a fact appears twice. */
function finish(disk: Disk, paths: FolderPaths, marker: Marker): void {
  if (existsSync(paths.rest)) {
    archive(disk, paths, marker)
    replaceFile(disk, paths.summary, Buffer.from(marker.summary))
    cut(disk, paths, marker.source_bytes)
  }
  enter(disk, paths, marker)
  disk.remove(paths.marker)
  disk.syncFolder(dirname(paths.marker))
}

function discard(disk: Disk, paths: FolderPaths): void {
  disk.remove(paths.marker)
  disk.syncFolder(dirname(paths.marker))
  disk.remove(paths.rest)
}

/** Writes at a fixed offset, so that a second run changes nothing. */
function archive(disk: Disk, { history, archive: path }: FolderPaths, { source_bytes, archive_bytes }: Marker): void {
  const target = disk.open(path, 'at')
  using _end = atEnd(() => disk.close(target))
  let position = archive_bytes
  withFile(history, (file) => {
    for (const bytes of piecesOf(file, { from: 0, to: source_bytes })) {
      writeAll(disk, target, bytes, position)
      position += bytes.length
    }
  })
  disk.sync(target)
}

/** Another program without our lock may append meanwhile, so lines that arrived late are copied over. */
function cut(disk: Disk, paths: FolderPaths, from: number): void {
  withFile(paths.history, (old) => {
    const { size } = writeRest(disk, paths, from)
    disk.rename(paths.rest, paths.history)
    disk.syncFolder(dirname(paths.history))
    const late = bytesOf(old, { from: size, to: Number.MAX_SAFE_INTEGER })
    if (late.length > 0) append(disk, paths.history, late)
  })
}

/** @returns how many bytes of the history it read */
function writeRest(disk: Disk, { history, rest }: FolderPaths, from: number): { readonly size: number } {
  return withFile(history, (file, size) => {
    writeFile(disk, rest, bytesOf(file, { from, to: size }), modeOf(history))
    return { size }
  })
}

function append(disk: Disk, path: string, bytes: Uint8Array): void {
  const file = disk.open(path, 'append')
  using _end = atEnd(() => disk.close(file))
  writeAll(disk, file, bytes)
  disk.sync(file)
}

/** Adds the record once, however often it is tried; starts a new line after a line that a crash cut short. */
function enter(disk: Disk, { log }: FolderPaths, { record }: Marker): void {
  const last = lastRecord(log)
  if (last && JSON.stringify(last) === JSON.stringify(record)) return
  const torn = unlessMissing(() => withFile(log, endsTorn))
  append(disk, log, Buffer.from(`${torn ? '\n' : ''}${JSON.stringify(record)}\n`))
}

/**
 * One line of compactions.jsonl. `from_line` and `to_line` count from 1 over all lines ever compacted here: they are line numbers in
 * history.archive.jsonl, and `source_sha256` covers exactly those lines. The other digests cover summary.md before and after. `edited`:
 * somebody changed summary.md since the previous compaction; `messages`: how many of the lines were messages.
 */
export type CompactionRecord = {
  readonly v: 1
  readonly at: string
  readonly model: string
  readonly from_line: number
  readonly to_line: number
  readonly messages: number
  readonly source_sha256: string
  readonly previous_sha256: string
  readonly summary_sha256: string
  readonly edited: boolean
}

/**
 * The content of compaction.json during a compaction. The first `source_bytes` of the history go into the archive at offset
 * `archive_bytes`.
 */
type Marker = { readonly record: CompactionRecord; readonly summary: string; readonly source_bytes: number; readonly archive_bytes: number }

/** Returns undefined for text that is not a valid marker. */
function markerIn(text: string): Marker | undefined {
  const value = parseJson(text)
  if (!isObject(value) || !isRecord(value.record) || typeof value.summary !== 'string') return undefined
  const { record, summary, source_bytes, archive_bytes } = value
  return isCount(source_bytes) && isCount(archive_bytes) ? { record, summary, source_bytes, archive_bytes } : undefined
}

const digests = ['source_sha256', 'previous_sha256', 'summary_sha256'] as const

function isRecord(value: unknown): value is CompactionRecord {
  if (!isObject(value) || value.v !== 1 || typeof value.at !== 'string' || typeof value.model !== 'string') return false
  if (!isCount(value.from_line) || !isCount(value.to_line) || !isCount(value.messages) || typeof value.edited !== 'boolean') return false
  return digests.every((name) => typeof value[name] === 'string')
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Returns the last record of compactions.jsonl; skips invalid lines. @throws errno errors */
export function lastRecord(path: string): CompactionRecord | undefined {
  return unlessMissing(() =>
    withFile(path, (file, size) => {
      let last: CompactionRecord | undefined
      for (const { text } of linesOf(file, { from: 0, to: size })) {
        const value = parseJson(text ?? '')
        if (isRecord(value)) last = value
      }
      return last
    }),
  )
}
