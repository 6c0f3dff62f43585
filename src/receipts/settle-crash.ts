/**
 * Compares log and checkpoint at every start, and reconciles them after a crash, or refuses because the log differs from what was written.
 */

import { closeSync, fstatSync, fsyncSync, ftruncateSync } from 'node:fs'
import { atEnd } from '../kit/errors.ts'
import type { Checkpoint } from './contract.ts'
import { isSealed, sealAnchor } from './form/anchor.ts'
import { follow, type Position } from './form/chain.ts'
import { readReceipt } from './form/receipt.ts'
import { linesOf, openLog } from './form/receipt-lines.ts'
import { createLeftOver, remedy } from './left-over.ts'
import type { Failed } from './receipt-failure.ts'
import { segmentsOf } from './segments.ts'
import { endsAs } from './verify/log-end.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

export type SettleResult =
  | { readonly ok: true; readonly checkpoint: Checkpoint; readonly adopted: number; readonly tornBytes: number }
  | Failed

type SettleOptions = {
  readonly file: number
  readonly path: string
  readonly headPath: string
  readonly key: Uint8Array
  readonly checkpoint: Checkpoint | undefined
  /** The log that this database began, or would begin; absent without a database. */
  readonly logId: string | undefined
}

/**
 * Reads only the last known receipt and what follows it; without a checkpoint it reads the whole log, which the head file must then
 * confirm.
 */
export function settle(options: SettleOptions & { readonly size: number }): SettleResult {
  const { checkpoint, path, key } = options
  if (!checkpoint) return adoptAll(options)
  if (!isSealed(key, checkpoint))
    return unfit(
      `the checkpoint in the database was not sealed with the receipt key: the database is of another home, or was altered. ${remedy}`,
    )
  const short = options.size < checkpoint.size
  if (short || !endsAs(options.file, checkpoint)) {
    if (carriedOver(path, checkpoint)) return adoptRest(options, { ...checkpoint, size: 0 })
    return short
      ? altered(path, `it has ${options.size} bytes, but ${checkpoint.size} are known to have been written`)
      : altered(path, `receipt ${checkpoint.count} is not the one that the checkpoint knows`)
  }
  return options.size === checkpoint.size ? { ok: true, checkpoint, adopted: 0, tornBytes: 0 } : adoptRest(options, checkpoint)
}

/**
 * Tells whether the checkpoint belongs to the previous segment: a crash came between closing that segment and storing the new checkpoint.
 */
function carriedOver(log: string, checkpoint: Checkpoint): boolean {
  const last = segmentsOf(log).at(-1)
  if (last === undefined) return false
  const file = openLog(last)
  using _end = atEnd(() => closeSync(file))
  return fstatSync(file).size === checkpoint.size && endsAs(file, checkpoint)
}

function adoptRest({ file, path, key }: SettleOptions, checkpoint: Checkpoint): SettleResult {
  let at: Position = checkpoint
  let [size, tornBytes] = [checkpoint.size, 0]
  const left = createLeftOver({ known: checkpoint.count })
  for (const { text, bytes, torn } of linesOf(file, checkpoint.size)) {
    if (torn) {
      tornBytes = bytes
      break
    }
    const link = follow(at, text, key)
    if (!link.ok) return altered(path, `invalid chain at receipt ${at.count + 1}: ${link.fault.message}`)
    at = link.at
    size += bytes
    const receipt = readReceipt(text ?? '')
    if (receipt) left.add(receipt)
  }
  const tooMany = left.tooMany()
  return tooMany === undefined ? adopted({ file, key, at, size, known: checkpoint.count, tornBytes }) : unfit(tooMany)
}

function adoptAll({ file, path, headPath, key, logId }: SettleOptions): SettleResult {
  const verified = verifyReceipts({ path, headPath, key: { ok: true, key }, checkpoint: undefined, ownLog: logId })
  const [problem] = verified.problems
  if (problem?.kind === 'database') return unfit(problem.message)
  if (problem) return altered(path, `invalid chain at receipt ${problem.record}: ${problem.message}`)
  const at = { ...verified, logId: verified.logId ?? logId }
  return adopted({ file, key, at, size: verified.size, known: 0, tornBytes: verified.tornBytes })
}

type VerifiedLog = {
  readonly file: number
  readonly key: Uint8Array
  readonly at: Position
  readonly size: number
  readonly known: number
  readonly tornBytes: number
}

function adopted({ file, key, at: { logId, count, head }, size, known, tornBytes }: VerifiedLog): SettleResult {
  if (tornBytes > 0) {
    ftruncateSync(file, size)
    fsyncSync(file)
  }
  const checkpoint = { ...sealAnchor(key, { logId: logId ?? newLogId(), count, head }), size }
  return { ok: true, checkpoint, adopted: count - known, tornBytes }
}

export function newLogId(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex()
}

/** The log is valid, but the database does not match it. */
function unfit(message: string): SettleResult {
  return { ok: false, failure: { code: 'altered', message } }
}

function altered(path: string, why: string): SettleResult {
  const message = `the receipts log "${path}" was altered: ${why}; run "braidclaw receipt verify", then restore it from a backup`
  return { ok: false, failure: { code: 'altered', message } }
}
