/** Puts a new summary and a shorter history in place of the old ones, together: a crash at any step leaves both old or both new. */

import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FolderPaths } from './agent-folder.ts'
import { bytesOf, digestOf, linesOf, piecesOf, readText, withFile } from './bounded-read.ts'
import { lastRecord, type Marker, markerIn, parsed } from './compaction-record.ts'
import { type Disk, modeOf, replaceFile, writeAll, writeFile } from './disk.ts'

/** What became of a compaction that a crash left half done. */
export type Settled = 'nothing' | 'completed' | 'discarded'

/** Longer than any marker we write. */
const markerBound = 1 << 20

/**
 * The marker is the commit point: once it has its name, the compaction is done, whoever puts the files in place; before, nothing is.
 * `rest` is there as long as the history is still the old one. Called under the folder's lock. @throws errno errors: before the commit
 * point nothing has changed, after it `settle` goes on
 */
export function replace(disk: Disk, paths: FolderPaths, marker: Marker): void {
  // Written before it counts, so that a full disk is noticed while all is as it was.
  writeRest(disk, paths, marker.source_bytes)
  replaceFile(disk, paths.marker, Buffer.from(`${JSON.stringify(marker)}\n`))
  finish(disk, paths, marker)
}

/** Completes or discards what a crash left. Called under the folder's lock. @throws errno errors */
export function settle(disk: Disk, paths: FolderPaths): Settled {
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

/** Its writer would do just this at its next start, over whatever was added since: so it is done before anything is. */
function settlePending(disk: Disk, { pending, summary, history }: FolderPaths): boolean {
  const found: unknown = withFile(pending, (file, size) => parsed(bytesOf(file, { from: 0, to: size }).toString()))
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

/** Somebody may have edited history or summary since the crash. As long as the history is whole, dropping the new summary loses nothing. */
function stillMeant(paths: FolderPaths, { record, source_bytes }: Marker): boolean {
  if (!existsSync(paths.rest)) return true
  const summary = digestOf(paths.summary)
  const known = summary === record.previous_sha256 || summary === record.summary_sha256
  return known && digestOf(paths.history, { from: 0, to: source_bytes }) === record.source_sha256
}

/** Each step may be done again. The summary goes first: until the history follows, it is at worst said twice. */
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

/** At its place, so that a second time changes nothing. */
function archive(disk: Disk, { history, archive: path }: FolderPaths, { source_bytes, archive_bytes }: Marker): void {
  const target = disk.open(path, 'at')
  try {
    let position = archive_bytes
    withFile(history, (file) => {
      for (const bytes of piecesOf(file, { from: 0, to: source_bytes })) {
        writeAll(disk, target, bytes, position)
        position += bytes.length
      }
    })
    disk.sync(target)
  } finally {
    disk.close(target)
  }
}

/** Another program, which knows nothing of our lock, may append while we do this: what came late is carried over. */
function cut(disk: Disk, paths: FolderPaths, from: number): void {
  withFile(paths.history, (old) => {
    const { size } = writeRest(disk, paths, from)
    disk.rename(paths.rest, paths.history)
    disk.syncFolder(dirname(paths.history))
    const late = bytesOf(old, { from: size, to: Number.MAX_SAFE_INTEGER })
    if (late.length > 0) append(disk, paths.history, late)
  })
}

/** @returns how much of the history it was made of, in bytes */
function writeRest(disk: Disk, { history, rest }: FolderPaths, from: number): { readonly size: number } {
  return withFile(history, (file, size) => {
    writeFile(disk, rest, bytesOf(file, { from, to: size }), modeOf(history))
    return { size }
  })
}

function append(disk: Disk, path: string, bytes: Uint8Array): void {
  const file = disk.open(path, 'append')
  try {
    writeAll(disk, file, bytes)
    disk.sync(file)
  } finally {
    disk.close(file)
  }
}

/** Once, however often it is tried; a line that a crash tore is left to itself. */
function enter(disk: Disk, { log }: FolderPaths, { record }: Marker): void {
  const last = lastRecord(log)
  if (last && JSON.stringify(last) === JSON.stringify(record)) return
  const torn = existsSync(log) && statSync(log).size > 0 && !endsLine(log)
  append(disk, log, Buffer.from(`${torn ? '\n' : ''}${JSON.stringify(record)}\n`))
}

function endsLine(path: string): boolean {
  return withFile(path, (file, size) => [...linesOf(file, { from: size - 1, to: size })].every(({ torn }) => !torn))
}
