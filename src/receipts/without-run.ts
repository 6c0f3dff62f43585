/** Sorts receipts that no run in the journal names: those the log itself explains, and those that reveal lost journal rows. */

import { attempt } from '../kit/errors.ts'
import { canonical, isObject } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'
import type { Receipt } from './form/receipt.ts'
import { adoptedBy, isAdoption, type Span } from './left-over.ts'

/** The facts that the database has besides the journal. */
export type KnownToDatabase = {
  /** How many receipts its checkpoint counts: the next start checks those after them. */
  readonly counted: number
  /** How many receipts an older version left, which recorded no clears. */
  readonly older: number
  /** Returns the operator's input for that receipt, as JSON. */
  readonly wordsOf: (receiptId: string) => string | undefined
}

export type WithoutRun = {
  /** Receipts that nothing explains: rows of the journal were lost. */
  readonly holes: readonly Span[]
  /** Unexplained receipts of an older version, which left no receipt of a clear. */
  readonly older: readonly Span[]
  /** The problems that the operator accepted, word for word. */
  readonly accepted: ReadonlySet<string>
  /** Receipts of acceptance whose text is missing or altered: they explain nothing. */
  readonly unexplainedAcceptances: readonly string[]
}

export const clearing = 'memory.clear'
export const acceptance = 'receipt.accept'
/** Marks that one conversation was deleted; its input names the receipts that belong to no run since then. */
export const deletion = 'conversation.delete'

/** Recognises an operator's action outside of any run: no tool has a dot in its name, even if the operator approved its call. */
export function isOperatorAction({ tool, approval }: Receipt): boolean {
  return approval === 'operator' && tool.includes('.')
}

type LogFacts = {
  readonly count: number
  /** Operator actions and adoptions, oldest first. */
  readonly special: readonly Receipt[]
  readonly isNamed: (seq: number) => boolean
}

export function withoutRun({ count, special, isNamed }: LogFacts, known: KnownToDatabase): WithoutRun {
  const adopted = special.filter(isAdoption).flatMap((receipt) => adoptedBy(receipt) ?? [])
  // An action that a crash rolled back never happened, although its receipt exists.
  const done = special.filter((receipt) => isOperatorAction(receipt) && receipt.seq <= known.counted && !isIn(adopted, receipt.seq))
  const clear = done.findLast(({ tool }) => tool === clearing)?.seq ?? 0
  const accepted = done.filter(({ tool }) => tool === acceptance).map((receipt) => ({ receipt, words: acceptedBy(receipt, known) }))
  const deleted = done.filter(({ tool }) => tool === deletion).flatMap((receipt) => acceptedBy(receipt, known)?.spans ?? [])
  const explained = [...adopted, ...deleted, ...accepted.flatMap(({ words }) => words?.spans ?? [])]
  const own = new Set(special.map(({ seq }) => seq))
  const holes: Span[] = []
  const older: Span[] = []
  for (let seq = clear + 1; seq <= Math.min(count, known.counted); seq += 1)
    if (!isNamed(seq) && !own.has(seq) && !isIn(explained, seq)) extend(seq <= known.older ? older : holes, seq)
  const unexplainedAcceptances = accepted.filter(({ receipt, words }) => !words && receipt.seq > clear && !isIn(explained, receipt.seq))
  return {
    holes,
    older,
    accepted: new Set(accepted.flatMap(({ words }) => words?.problems ?? [])),
    unexplainedAcceptances: unexplainedAcceptances.map(
      ({ receipt }) => `what receipt ${receipt.seq} (${receipt.timestamp}) accepted is gone from the database, or altered`,
    ),
  }
}

function isIn(spans: readonly Span[], seq: number): boolean {
  return spans.some(({ first, last }) => first <= seq && seq <= last)
}

function extend(spans: Span[], seq: number): void {
  const last = spans.at(-1)
  if (last?.last === seq - 1) spans[spans.length - 1] = { first: last.first, last: seq }
  else spans.push({ first: seq, last: seq })
}

/** Returns the operator's input for a receipt, only if the receipt contains its hash. */
export function wordsUnder({ id, args_hash }: Receipt, wordsOf: KnownToDatabase['wordsOf']): unknown {
  return attempt(() => {
    const value: unknown = JSON.parse(wordsOf(id) ?? 'null')
    return sha256(canonical(value)) === args_hash ? value : undefined
  })
}

function acceptedBy(receipt: Receipt, { wordsOf }: KnownToDatabase): { spans: Span[]; problems: string[] } | undefined {
  const input = wordsUnder(receipt, wordsOf)
  if (!isObject(input)) return undefined
  const { receipts, problems } = input
  return {
    spans: Array.isArray(receipts) ? receipts.flatMap((span) => spanOf(span) ?? []) : [],
    problems: Array.isArray(problems) ? problems.filter((each) => typeof each === 'string') : [],
  }
}

function spanOf(value: unknown): Span | undefined {
  const { first, last } = isObject(value) ? value : {}
  return typeof first === 'number' && typeof last === 'number' ? { first, last } : undefined
}
