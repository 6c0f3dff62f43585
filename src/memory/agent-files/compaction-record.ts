/** Defines the record of a compaction: the lines it covers, the model, and digests that tie the summary to those lines. */

import { unlessMissing } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { linesOf, withFile } from './bounded-read.ts'

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
export type Marker = {
  readonly record: CompactionRecord
  readonly summary: string
  readonly source_bytes: number
  readonly archive_bytes: number
}

/** Returns undefined for text that is not a valid marker. */
export function markerIn(text: string): Marker | undefined {
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
