/** Closes the log as a numbered segment and starts the next one with a receipt of that; the chain continues across both. */

import { closeSync, constants, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEnd } from '../kit/errors.ts'
import type { AppendResult, Checkpoint, ReceiptDraft, ReceiptPaths } from './contract.ts'
import { sealAnchor } from './form/anchor.ts'
import { lineOf } from './form/receipt.ts'
import { writeHead } from './head.ts'
import { readKey } from './key.ts'
import { chained, createReceiptLog, syncFolder } from './ledger.ts'
import { fullDisk, guarded } from './receipt-failure.ts'
import { nextSegment, secondNames } from './segments.ts'

export type Rotation = {
  readonly paths: ReceiptPaths
  readonly checkpoint: Checkpoint | undefined
  /** The first receipt of the new segment, because an empty log would look like one that somebody emptied. */
  readonly draft: ReceiptDraft
}

/**
 * Requires the lock between processes, like an append; the caller stores the returned checkpoint under it. A crash leaves either the old
 * log, or the new one with the old checkpoint, which the next append recognises by the previous segment.
 */
export function rotate(rotation: Rotation): AppendResult & { readonly segment?: string } {
  return guarded(rotation.paths.log, () => rotated(rotation))
}

function rotated({ paths, checkpoint, draft }: Rotation): AppendResult & { readonly segment?: string } {
  const settled = createReceiptLog({ paths })([], checkpoint)
  if (!settled.ok || !settled.checkpoint) return settled
  const key = readKey(paths.key)
  if (!key.ok) return { ok: false, failure: key.failure }
  const [receipt] = chained(settled.checkpoint, [draft], key.key)
  if (!receipt) throw new Error('one draft makes one receipt')
  for (const name of secondNames(paths.log)) rmSync(name)
  const bytes = Buffer.from(`${lineOf(receipt)}\n`)
  const next = `${paths.log}.next`
  if (!wrote(next, bytes)) return { ok: false, failure: fullDisk(paths.log) }
  const segment = nextSegment(paths.log)
  linkSync(paths.log, segment)
  renameSync(next, paths.log)
  syncFolder(dirname(paths.log))
  const head = sealAnchor(key.key, { logId: receipt.log_id, count: receipt.seq, head: receipt.receipt_hash })
  writeHead(paths.head, head)
  return { ...settled, receiptIds: [receipt.id], checkpoint: { ...head, size: bytes.length }, segment }
}

function wrote(path: string, bytes: Uint8Array): boolean {
  rmSync(path, { force: true })
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  using _end = atEnd(() => closeSync(file))
  const whole = writeSync(file, bytes) === bytes.length
  if (whole) fsyncSync(file)
  return whole
}
