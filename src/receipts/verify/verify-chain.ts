/** Verifies a whole log offline: first the chain, then its end against the checkpoint, the head file and an anchor. */

import { hasCode } from '../../kit/errors.ts'
import { type Anchor, isSealed } from '../form/anchor.ts'
import { follow, type LinkFault, type Position, start } from '../form/chain.ts'
import { readReceipt } from '../form/receipt.ts'
import { readLines } from '../form/receipt-lines.ts'
import { readHead } from '../head.ts'
import type { ReadKey } from '../key.ts'
import { createLeftOver, type LeftOver } from '../left-over.ts'
import { diskFailure } from '../receipt-failure.ts'
import { filesOf } from '../segments.ts'

/** `record` counts from 1. For a truncated log it is the first missing receipt. */
export type VerifyProblem = {
  readonly record: number
  readonly id?: string
  /** `database`: the log is valid, but has more receipts than the database can account for. */
  readonly kind: LinkFault['kind'] | 'key' | 'unreadable' | 'cut' | 'rewritten' | 'seal' | 'head' | 'database'
  readonly message: string
}

export type VerifyWarning = {
  readonly record: number
  readonly kind: 'torn' | 'behind' | 'ahead' | 'no_checkpoint'
  readonly message: string
}

export type Verification = Position & {
  readonly ok: boolean
  /** The first problem is the first broken receipt; the receipts after it are not checked. */
  readonly problems: readonly VerifyProblem[]
  readonly warnings: readonly VerifyWarning[]
  readonly completeness: 'proved by anchor' | 'proved by checkpoint' | 'not provable without an anchor'
  /** Bytes of complete receipts, and of a torn line after them. */
  readonly size: number
  readonly tornBytes: number
}

export type VerifyReceiptsOptions = {
  readonly path: string
  readonly headPath: string
  readonly key: ReadKey
  /** The database's checkpoint. Read it before the log, so that an append in between does no harm. */
  readonly checkpoint: Anchor | undefined
  /** Without a checkpoint: the log that the database would have begun. Absent without a database. */
  readonly ownLog?: string
  readonly against?: Anchor
}

type ChainWalk = Position & {
  readonly size: number
  readonly tornBytes: number
  readonly problem?: VerifyProblem
  readonly heads: ReadonlyMap<number, string>
  readonly tooMany?: string
}
type Witness = { readonly name: string; readonly anchor: Anchor }

/** Throws only bugs. Memory use does not grow with the log. */
export function verifyReceipts(options: VerifyReceiptsOptions): Verification {
  const { checkpoint, against } = options
  const head = headOf(options)
  const witnesses: Witness[] = [
    ...(checkpoint ? [{ name: 'checkpoint', anchor: checkpoint }] : []),
    ...(head.state === 'read' ? [{ name: 'head file', anchor: head.anchor }] : []),
    ...(against ? [{ name: 'anchor', anchor: against }] : []),
  ]
  const walked = walk(options, new Set(witnesses.map(({ anchor }) => anchor.count)))
  const problems = problemsOf(options, walked, witnesses, head.state)
  const { logId, count, head: last, size, tornBytes } = walked
  return {
    ok: problems.length === 0,
    logId,
    count,
    head: last,
    problems,
    warnings: warningsOf(walked, witnesses, checkpoint),
    completeness: completenessOf(count, problems, options),
    size,
    tornBytes,
  }
}

/** Reads the segments, oldest first; `size` and `tornBytes` describe the current log. */
function walk({ path, key, checkpoint, ownLog }: VerifyReceiptsOptions, counts: ReadonlySet<number>): ChainWalk {
  const heads = new Map<number, string>()
  const known = checkpoint?.count ?? 0
  // Without a database there is nothing to compare the end of the log with.
  const left = checkpoint || ownLog !== undefined ? createLeftOver({ known, ownLog }) : undefined
  let walked: ChainWalk = { ...start, size: 0, tornBytes: 0, heads }
  for (const file of filesOf(path)) {
    walked = walkFile({ path: file, key, from: walked, heads, known, left }, counts)
    if (walked.problem) return walked
    if (walked.tornBytes > 0 && file !== path) {
      const message = `the segment "${file}" ends in an unfinished line, which a closed one never does`
      return { ...walked, problem: { record: walked.count + 1, kind: 'form', message } }
    }
  }
  const tooMany = left?.tooMany()
  return tooMany === undefined ? walked : { ...walked, tooMany }
}

type FileWalk = {
  readonly path: string
  readonly key: ReadKey
  readonly from: Position
  readonly heads: Map<number, string>
  /** `left` checks the receipts after number `known`. */
  readonly known: number
  readonly left: LeftOver | undefined
}

function walkFile({ path, key, from, heads, known, left }: FileWalk, counts: ReadonlySet<number>): ChainWalk {
  let at: Position = { logId: from.logId, count: from.count, head: from.head }
  let size = 0
  try {
    for (const { text, bytes, torn } of readLines(path)) {
      if (!key.ok) return { ...at, size, tornBytes: 0, heads, problem: { record: 1, kind: 'key', message: key.failure.message } }
      if (torn) return { ...at, size, tornBytes: bytes, heads }
      const link = follow(at, text, key.key)
      if (!link.ok) return { ...at, size, tornBytes: 0, heads, problem: broken(at.count + 1, link.fault) }
      at = link.at
      size += bytes
      if (counts.has(at.count)) heads.set(at.count, at.head)
      const receipt = left && at.count > known ? readReceipt(text ?? '') : undefined
      if (receipt) left?.add(receipt)
    }
  } catch (error) {
    const failure = diskFailure(path, error)
    if (!failure) throw error
    if (!hasCode(error, 'ENOENT'))
      return { ...at, size, tornBytes: 0, heads, problem: { record: at.count + 1, kind: 'unreadable', message: failure.message } }
  }
  return { ...at, size, tornBytes: 0, heads }
}

function problemsOf(
  { key, headPath }: VerifyReceiptsOptions,
  walked: ChainWalk,
  witnesses: readonly Witness[],
  head: HeadState['state'],
): VerifyProblem[] {
  if (walked.problem) return [walked.problem]
  const found = witnesses.flatMap((witness) => contradiction(walked, witness, key) ?? [])
  if (found.length === 0 && walked.tooMany !== undefined)
    return [
      { record: (witnesses.find(({ name }) => name === 'checkpoint')?.anchor.count ?? 0) + 1, kind: 'database', message: walked.tooMany },
    ]
  if (head === 'read' || (walked.count === 0 && head === 'missing')) return found
  const message = `the head file "${headPath}" is ${head}; the next append rewrites it if the checkpoint agrees with the log`
  return [...found, { record: Math.max(1, walked.count), kind: 'head', message }]
}

/** Returns what a witness knows that the log contradicts. A witness with fewer receipts than the log confirms only those. */
function contradiction(walked: ChainWalk, { name, anchor }: Witness, key: ReadKey): VerifyProblem | undefined {
  const { logId, count, head, mac } = anchor
  if (!key.ok) return { record: 1, kind: 'key', message: key.failure.message }
  if (!isSealed(key.key, { logId, count, head, mac })) {
    return { record: Math.max(1, count), kind: 'seal', message: `the ${name} was not sealed with this key` }
  }
  if (walked.logId !== undefined && logId !== walked.logId) {
    return broken(1, { kind: 'log', message: `the ${name} speaks of another log (${logId}, not ${walked.logId})` })
  }
  if (count > walked.count) {
    return broken(walked.count + 1, {
      kind: 'cut',
      message: `it is missing: the ${name} knows ${count} receipts, the log holds ${walked.count}`,
    })
  }
  if (count > 0 && walked.heads.get(count) !== head) {
    return broken(count, { kind: 'rewritten', message: `it is not the receipt that the ${name} knows` })
  }
  return undefined
}

function broken(record: number, { kind, message, id }: Pick<VerifyProblem, 'kind' | 'message' | 'id'>): VerifyProblem {
  return { record, kind, message, id }
}

function warningsOf(
  { count, tornBytes, tooMany }: ChainWalk,
  witnesses: readonly Witness[],
  checkpoint: Anchor | undefined,
): VerifyWarning[] {
  const head = witnesses.find(({ name }) => name === 'head file')?.anchor
  const torn = `the log ends in an unfinished line of ${tornBytes} bytes, left by a crash; the next start removes it`
  const ahead = `the log is ${count - (checkpoint?.count ?? 0)} ahead of the checkpoint, as after a crash; the next start adopts them`
  const missing = 'the checkpoint to compare with is missing: the database is new or was replaced'
  return [
    ...(tornBytes > 0 ? [{ record: count + 1, kind: 'torn' as const, message: torn }] : []),
    ...(checkpoint && checkpoint.count < count && tooMany === undefined
      ? [{ record: checkpoint.count + 1, kind: 'ahead' as const, message: ahead }]
      : []),
    ...(head && head.count < count
      ? [{ record: head.count + 1, kind: 'behind' as const, message: `the head file stops at ${head.count}` }]
      : []),
    ...(!checkpoint && count > 0 && tooMany === undefined ? [{ record: count, kind: 'no_checkpoint' as const, message: missing }] : []),
  ]
}

/** A witness on the same disk can be rolled back together with the log; only an anchor kept elsewhere cannot. */
function completenessOf(
  count: number,
  problems: readonly VerifyProblem[],
  { checkpoint, against }: VerifyReceiptsOptions,
): Verification['completeness'] {
  if (problems.length === 0 && against && against.count === count) return 'proved by anchor'
  if (problems.length === 0 && checkpoint) return 'proved by checkpoint'
  return 'not provable without an anchor'
}

type HeadState = ReturnType<typeof readHead>

function headOf({ headPath }: VerifyReceiptsOptions): HeadState {
  try {
    return readHead(headPath)
  } catch (error) {
    if (!diskFailure(headPath, error)) throw error
    return { state: 'damaged' }
  }
}
