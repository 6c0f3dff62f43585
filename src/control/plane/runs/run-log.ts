/** Appends to the logs of runs, and reads ranges of them. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { flag, int } from '../row.ts'
import { logTopic } from './log-growth.ts'
import { readPieces, writePiece } from './log-pieces.ts'
import { type Access, lockRun, ownRun } from './run-row.ts'

export const mostLogBytes = 8_388_608
const mostPieceBytes = 1_048_576
const mostReadBytes = 1_048_576

export type LogState = { readonly log_bytes: number; readonly log_truncated: boolean }
export type Appending = Access & { readonly at: number; readonly piece: string }

/**
 * Stores what lies behind the end of the log, so a piece that comes twice, or again and longer, is stored once. What comes after the first
 * 8 MiB is dropped, and the log is marked. @throws PlaneRefusal conflict for a gap, with the byte to go on from; too_large
 */
export function* appendLog(context: PlaneContext, appending: Appending): Command<LogState> {
  if (!Number.isSafeInteger(appending.at) || appending.at < 0)
    throw new PlaneRefusal('bad_request', `"at" is the byte where the piece begins, from 0 on; this one is ${appending.at}`)
  const row = yield* lockRun(context, appending)
  const bytes = Buffer.from(appending.piece.toWellFormed(), 'utf8')
  if (bytes.length > mostPieceBytes)
    throw new PlaneRefusal('too_large', `a piece of a log has at most ${mostPieceBytes} bytes; this one has ${bytes.length}`)
  const end = int(row, 'log_bytes')
  if (flag(row, 'log_truncated')) return { log_bytes: end, log_truncated: true }
  if (appending.at > end)
    throw new PlaneRefusal('conflict', `the log has ${end} bytes and this piece begins at ${appending.at}; send what is missing first`, {
      log_bytes: end,
    })
  return yield* store(context, row, bytes.subarray(end - appending.at))
}

function* store(context: PlaneContext, row: Row, bytes: Uint8Array): Command<LogState> {
  const [run, end] = [int(row, 'id'), int(row, 'log_bytes')]
  if (bytes.length === 0) return { log_bytes: end, log_truncated: false }
  const kept = bytes.subarray(0, mostLogBytes - end)
  const isTruncated = kept.length < bytes.length
  if (kept.length > 0) yield* writePiece({ run, end, bytes: kept })
  yield ['UPDATE runs SET log_bytes = ?, log_truncated = ? WHERE id = ?', [end + kept.length, isTruncated ? 1 : 0, run]]
  yield* context.store.announce(logTopic(run))
  return { log_bytes: end + kept.length, log_truncated: isTruncated }
}

export type Reading = Access & { readonly from: number; readonly to: number }

/** At most 1 MiB at once; behind the end there are no bytes. */
export function* readLog({ from, to, ...access }: Reading): Command<{ readonly bytes: Uint8Array; readonly total: number }> {
  const row = yield* ownRun(access)
  const total = int(row, 'log_bytes')
  const last = Math.min(to, total, from + mostReadBytes)
  if (last <= from) return { bytes: new Uint8Array(), total }
  return { bytes: yield* readPieces({ run: int(row, 'id'), from, to: last }), total }
}
