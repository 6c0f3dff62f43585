/** Writes the receipts of one transaction: repairs what a crash left, numbers and chains new receipts, and writes them with one sync. */

import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { atEnd, unlessMissing } from '../kit/errors.ts'
import type { AppendReceipts, AppendResult, Checkpoint, Ledger, OpenLedger, ReceiptDraft, ReceiptPaths } from './contract.ts'
import { sealAnchor } from './form/anchor.ts'
import { genesis, lineOf, type Receipt, readReceipt, sealed } from './form/receipt.ts'
import { readHead, writeHead } from './head.ts'
import { createKey, type ReadKey, readKey } from './key.ts'
import { adoptionDraft } from './left-over.ts'
import { diskFailure, type Failed, fullDisk, guarded, type ReceiptFailure } from './receipt-failure.ts'
import { newLogId, type SettleResult, settle } from './settle-crash.ts'
import { lineBefore } from './verify/log-end.ts'

type ReceiptLogOptions = {
  readonly paths: ReceiptPaths
  /** Syncs a file to disk; only benchmarks and tests of a failing sync pass another function. */
  readonly sync?: (file: number) => void
  readonly now?: () => number
}

type Book = {
  readonly file: number
  /** The log did not exist before. */
  readonly isNew: boolean
  readonly paths: ReceiptPaths
  readonly sync: (file: number) => void
  readonly now: () => number
}

const errorLength = 300

/** Bytes that must be free before an act: many times the receipts of one step. */
const neededRoom = 65_536

/**
 * The caller holds the lock between processes and stores the returned checkpoint under it. Errors of disk, key or log are returned as a
 * failure, with the log unchanged; only bugs throw.
 */
export function createLedgers({ paths, sync = fdatasyncSync, now = Date.now }: ReceiptLogOptions): OpenLedger {
  return (checkpoint, logId) =>
    guarded(paths.log, () => {
      const known = openLog(paths.log)
      const missing = known === undefined ? fault(paths, checkpoint) : undefined
      if (missing) return missing
      const file = known ?? createLog(paths.log)
      const begun = closedUnlessBegun(file, () => begin(file, paths, { checkpoint, logId }))
      return begun.ok ? { ok: true, ledger: ledgerOver({ file, isNew: known === undefined, paths, sync, now }, begun) } : begun
    })
}

type Done = Extract<AppendResult, { ok: true }>
type Begun = Extract<SettleResult, { ok: true }> & { readonly key: Uint8Array }

/** The database's knowledge of the log. */
type KnownLog = { readonly checkpoint: Checkpoint | undefined; readonly logId: string | undefined }

/** Returns the position after which the next receipt follows. */
function begin(file: number, paths: ReceiptPaths, { checkpoint, logId }: KnownLog): Begun | Failed {
  const stat = fstatSync(file)
  if (!stat.isFile()) return { ok: false, failure: unusable(paths.log) }
  const { size } = stat
  const missing = size === 0 ? fault(paths, checkpoint) : undefined
  if (missing) return missing
  const key = keyFor(paths, size === 0)
  if (!key.ok) return { ok: false, failure: key.failure }
  const settled =
    size === 0
      ? begun(paths, key.key, checkpoint?.logId ?? logId)
      : settle({ file, size, path: paths.log, headPath: paths.head, key: key.key, checkpoint, logId })
  return settled.ok ? { ...settled, key: key.key } : settled
}

function closedUnlessBegun(file: number, step: () => Begun | Failed): Begun | Failed {
  let begun: Begun | Failed | undefined
  using _end = atEnd(() => {
    if (!begun?.ok) closeSync(file)
  })
  begun = step()
  return begun
}

function ledgerOver(book: Book, { checkpoint, adopted, tornBytes, key }: Begun): Ledger {
  const receipts: Receipt[] = []
  const step: { time?: number } = {}

  function add(draft: ReceiptDraft): string {
    const last = receipts.at(-1)
    step.time ??= timeAfter(book.file, checkpoint.size, draft.at)
    const from = last ? { count: last.seq, head: last.receipt_hash } : checkpoint
    const receipt = receiptOf({ ...draft, at: step.time }, from, { logId: checkpoint.logId, key })
    receipts.push(receipt)
    return receipt.id
  }

  function account(first: number, last: number): void {
    if (first <= last) add(adoptionDraft({ first, last }, book.now()))
  }

  account(checkpoint.count - adopted + 1, checkpoint.count)
  const lasting = receipts.length
  return {
    adopted,
    tornBytes,
    add,
    count: () => receipts.length,
    cut: (count) => void receipts.splice(Math.max(count, lasting)),
    disown: () => account(checkpoint.count + 1, checkpoint.count + receipts.length),
    prove: (byWriting) => guarded(book.paths.log, () => prove(book, checkpoint, byWriting)),
    write: () =>
      guarded(book.paths.log, (): AppendResult => {
        if (receipts.length === 0 && tornBytes > 0) writeHead(book.paths.head, checkpoint)
        const written = receipts.length > 0 ? write(book, checkpoint, { receipts, key }) : { ok: true as const, checkpoint }
        return written.ok ? { ...written, receiptIds: receipts.slice(lasting).map(({ id }) => id), adopted, tornBytes } : written
      }),
    close: () => closeSync(book.file),
  }
}

/** All receipts of one step have one timestamp, which must differ from that of the step before. */
function timeAfter(file: number, size: number, at: number): number {
  const line = size > 0 ? lineBefore(file, size) : undefined
  const last = line === undefined ? undefined : readReceipt(line)?.timestamp
  return last === new Date(at).toISOString() ? at + 1 : at
}

/**
 * Returns a failure when the log is missing or empty although the checkpoint or the head file knows receipts. A checkpoint of none remains
 * where a crash interrupted the proof of an empty log.
 */
function fault({ log, head }: ReceiptPaths, checkpoint: Checkpoint | undefined): Failed | undefined {
  if (checkpoint && checkpoint.count > 0) return missingLog(log, `${checkpoint.count} receipts are known`)
  const found = readHead(head)
  if (found.state === 'missing' || (found.state === 'read' && found.anchor.count === 0)) return undefined
  return missingLog(log, found.state === 'read' ? `the head file knows ${found.anchor.count} receipts` : 'there is a damaged head file')
}

/** Creates a key only when the log is empty. */
function keyFor({ key: path, keyless }: ReceiptPaths, empty: boolean): ReadKey {
  const key = readKey(path)
  return key.ok || !key.missing || !empty ? key : createKey(path, keyless)
}

/** Writes a head file with count 0: it distinguishes a log whose first append a crash interrupted from one that lost its beginning. */
function begun({ head }: ReceiptPaths, key: Uint8Array, logId = newLogId()): Extract<SettleResult, { ok: true }> {
  const anchor = sealAnchor(key, { logId, count: 0, head: genesis })
  writeHead(head, anchor)
  return { ok: true, checkpoint: { ...anchor, size: 0 }, adopted: 0, tornBytes: 0 }
}

/** Returns the receipts of these drafts, chained after `from`. */
export function chained(from: Checkpoint, drafts: readonly ReceiptDraft[], key: Uint8Array): Receipt[] {
  const receipts: Receipt[] = []
  for (const draft of drafts) {
    const last = receipts[receipts.length - 1]
    receipts.push(receiptOf(draft, last ? { count: last.seq, head: last.receipt_hash } : from, { logId: from.logId, key }))
  }
  return receipts
}

function receiptOf(
  draft: ReceiptDraft,
  at: { readonly count: number; readonly head: string },
  { logId, key }: { readonly logId: string; readonly key: Uint8Array },
): Receipt {
  const seq = at.count + 1
  const { argsHash, resultHash, status, risk, approval, error, sandbox, changes } = draft
  const body = {
    v: 3 as const,
    seq,
    log_id: logId,
    id: `receipt-${logId.slice(0, 8)}-${seq}`,
    timestamp: new Date(draft.at).toISOString(),
    conversation_id: draft.conversationId.toWellFormed(),
    tool: draft.tool.toWellFormed(),
    args_hash: argsHash,
    result_hash: resultHash,
    status,
    risk,
    ...(approval === undefined ? {} : { approval: approval.toWellFormed() }),
    ...(error === undefined ? {} : { error: shortened(error) }),
    sandbox,
    changes,
    previous_hash: at.head,
  }
  return sealed(body, key)
}

function shortened(error: string): string {
  return (error.length > errorLength ? `${error.slice(0, errorLength - 1)}…` : error).toWellFormed()
}

type Batch = { readonly receipts: readonly Receipt[]; readonly key: Uint8Array }

/** Writes once. A full disk may accept only a part without an error; after any error the log is truncated to its old size. */
function write({ file, paths, sync }: Book, from: Checkpoint, { receipts, key }: Batch): Failed | Pick<Done, 'ok' | 'checkpoint'> {
  const bytes = new TextEncoder().encode(receipts.map((receipt) => `${lineOf(receipt)}\n`).join(''))
  const size = from.size + bytes.length
  const last = receipts[receipts.length - 1]
  const head = sealAnchor(key, { logId: from.logId, count: last?.seq ?? from.count, head: last?.receipt_hash ?? from.head })
  try {
    const count = writeSync(file, bytes)
    if (count < bytes.length) return cutBack(file, from.size, fullDisk(paths.log))
    sync(file)
    if (fstatSync(file).size !== size) return { ok: false, failure: crowded(paths.log) }
    writeHead(paths.head, head)
    return { ok: true, checkpoint: { ...head, size } }
  } catch (error) {
    const failure = diskFailure(paths.log, error)
    if (failure) return cutBack(file, from.size, failure)
    throw error
  }
}

/**
 * A log that has receipts needs only room. An empty one is proved by a write, which is taken back; a sync before it refuses files of the
 * kernel, which must not be written to.
 */
function prove({ file, isNew, paths, sync }: Book, { size, ...anchor }: Checkpoint, byWriting: boolean): Failed | { readonly ok: true } {
  const { blocks, bfree, bavail, bsize } = statfsSync(paths.log)
  const free = (process.geteuid?.() === 0 ? bfree : bavail) * bsize
  if (blocks > 0 && free < neededRoom) return { ok: false, failure: fullDisk(paths.log) }
  writeHead(paths.head, anchor)
  if (size > 0 && !byWriting) return { ok: true }
  if (!isNew) sync(file)
  ftruncateSync(file, size)
  using _end = atEnd(() => ftruncateSync(file, size))
  const count = writeSync(file, new Uint8Array(4096).fill(0x20))
  if (count < 4096) return { ok: false, failure: fullDisk(paths.log) }
  sync(file)
  return fstatSync(file).size === size + count ? { ok: true } : { ok: false, failure: unusable(paths.log) }
}

function cutBack(file: number, size: number, failure: ReceiptFailure): Failed {
  ftruncateSync(file, size)
  return { ok: false, failure }
}

function crowded(path: string): ReceiptFailure {
  return { code: 'altered', message: `another program wrote to "${path}" at the same time; find it, then run "braidclaw receipt verify"` }
}

function unusable(path: string): ReceiptFailure {
  const message = `receipts at "${path}" cannot be written, because that is not an ordinary file; name another "path" in [receipts]`
  return { code: 'unreadable', message }
}

function missingLog(path: string, knows: string): Failed {
  const message = `the receipts log "${path}" is missing or empty, but ${knows}; restore it from a backup`
  return { ok: false, failure: { code: 'altered', message } }
}

const flags = constants.O_RDWR | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK

function openLog(path: string): number | undefined {
  return unlessMissing(() => openSync(path, flags))
}

/** Syncs the folder, so that the file name survives a power failure too. */
function createLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, flags | constants.O_CREAT | constants.O_EXCL, 0o600)
  syncFolder(dirname(path))
  return file
}

export function syncFolder(path: string): void {
  const folder = openSync(path, constants.O_RDONLY)
  fsyncSync(folder)
  closeSync(folder)
}

/**
 * Appends receipts that are all known at once. Requires the lock between processes, like a ledger. Without drafts it only repairs, and
 * creates no log. Only bugs throw.
 */
export function createReceiptLog(options: ReceiptLogOptions): AppendReceipts {
  const { paths } = options
  const open = createLedgers(options)
  return (drafts, checkpoint, logId) => {
    if (drafts.length === 0 && isEmpty(paths.log)) return guarded(paths.log, () => fault(paths, checkpoint) ?? nothing)
    const opened = open(checkpoint, logId)
    if (!opened.ok) return opened
    const { ledger } = opened
    using _end = atEnd(() => ledger.close())
    for (const draft of drafts) ledger.add(draft)
    return ledger.write()
  }
}

const nothing: AppendResult = { ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 }

function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
}
