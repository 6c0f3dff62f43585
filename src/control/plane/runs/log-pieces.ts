/** Stores the pieces of a log, and cuts ranges of bytes out of them. */

import type { Command, Row } from '../../contract/store-port.ts'
import { first, int, text } from '../row.ts'

/**
 * Text as it is, behind a "t"; bytes that are not UTF-8, for example half of a character at the end of a piece, or that have a NUL, which
 * PostgreSQL keeps in no text, as base64 behind a "b".
 */
function storedPiece(bytes: Uint8Array): string {
  const asText = Buffer.from(bytes).toString('utf8')
  const isText = !asText.includes('\0') && Buffer.from(asText, 'utf8').equals(bytes)
  return isText ? `t${asText}` : `b${Buffer.from(bytes).toString('base64')}`
}

function bytesOfPiece(stored: string): Uint8Array {
  return Buffer.from(stored.slice(1), stored.startsWith('b') ? 'base64' : 'utf8')
}

/** A piece grows up to this, so that a program that prints single characters does not make a row of each. */
const smallBytes = 8_192

/** Appends at the end of the log, which is byte `end`. */
export function* writePiece({
  run,
  end,
  bytes,
}: {
  readonly run: number
  readonly end: number
  readonly bytes: Uint8Array
}): Command<void> {
  const last = yield* first('SELECT at_byte, piece FROM run_logs WHERE run_id = ? ORDER BY at_byte DESC LIMIT 1', [run])
  if (last && end - int(last, 'at_byte') + bytes.length <= smallBytes) {
    const grown = Buffer.concat([bytesOfPiece(text(last, 'piece')), bytes])
    yield ['UPDATE run_logs SET piece = ? WHERE run_id = ? AND at_byte = ?', [storedPiece(grown), run, int(last, 'at_byte')]]
  } else yield ['INSERT INTO run_logs (run_id, at_byte, piece) VALUES (?, ?, ?)', [run, end, storedPiece(bytes)]]
}

export type LogRange = { readonly run: number; readonly from: number; readonly to: number }

/** The bytes of a log from `from` up to and without `to`. */
export function* readPieces({ run, from, to }: LogRange): Command<Uint8Array> {
  const rows = yield [
    `SELECT at_byte, piece FROM run_logs WHERE run_id = ? AND at_byte < ?
      AND at_byte >= COALESCE((SELECT MAX(at_byte) FROM run_logs WHERE run_id = ? AND at_byte <= ?), 0) ORDER BY at_byte`,
    [run, to, run, from],
  ]
  return Buffer.concat(rows.map((row) => cut(row, { from, to })))
}

function cut(row: Row, { from, to }: { readonly from: number; readonly to: number }): Uint8Array {
  const at = int(row, 'at_byte')
  return bytesOfPiece(text(row, 'piece')).subarray(Math.max(0, from - at), Math.max(0, to - at))
}
