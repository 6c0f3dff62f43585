/** Repairs the journal after a crash: adds a result to each unfinished act of a dead process, and an end to its run. */

import { isObject } from '../../kit/json.ts'
import type { WrittenReceipt } from '../../receipts/contract.ts'
import type { ExternalEvent, InternalEvent, ToolOutcome } from '../../runtime/event.ts'
import { applied, notApplied } from '../../runtime/outcome.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { externalOf, type ReplayEntry } from '../../runtime/replay/external-entry.ts'
import { deadRuns, type Journal, type OpenIntent } from '../journal/journal.ts'
import type { JournalEntry } from '../journal/journal-entry.ts'
import { lostOutcome, resultHashOf } from '../journal/receipt-draft.ts'
import type { RecordWriter, RepairParts } from '../record-writer.ts'
import { createPendingChanges, type Fate, type FateOf } from './pending-changes.ts'

/** Lists the problems that the recovery at start found and repaired. */
export type Recovery = {
  readonly interrupted: readonly { readonly runId: string; readonly callId: string; readonly tool: string; readonly receipt?: string }[]
  /** Runs that a dead process left open, now closed with code `error`. */
  readonly closedRuns: readonly string[]
  /** Receipts that a crash left beyond the checkpoint. */
  readonly adopted: number
  readonly tornBytes: number
  /** Runs that stay open for now, because the fate of a call's changes is not known. */
  readonly undecided: readonly string[]
}

const message = 'the process ended before the run did'

/**
 * Call it at start. It leaves runs of living processes alone, and without `fateOf` those of dead ones whose changes are undecided: call it
 * again with `fateOf` when the changes are settled.
 */
export function recoverRuns(record: RecordWriter, fateOf?: FateOf): Recovery {
  if (record.isAtRest()) return { interrupted: [], closedRuns: [], adopted: 0, tornBytes: 0, undecided: [] }
  return record.repair((parts) => {
    const recovery = repairRuns(parts, fateOf)
    const pending = createPendingChanges(parts.memory, record)
    return { ...recovery, undecided: [...recovery.undecided, ...pending.recover(fateOf)] }
  })
}

/** Never executes a call again: whether it happened is unknown, unless its receipt was written before the crash. */
function repairRuns(parts: RepairParts, fateOf: FateOf | undefined): Recovery {
  const { memory, log, now, end, calls, settle, disown } = parts
  const { journal } = memory
  const { adopted, tornBytes } = settle()
  const found = deadRuns(journal)
  const undecided = new Set(fateOf ? [] : found.flatMap((run) => (hasOpenChanges(journal, run) ? [run.runId] : [])))
  const dead = found.filter(({ runId }) => !undecided.has(runId))
  // The journal of these runs was cleared; an entry now would start it in the middle of a run, and it would look altered.
  const forgotten = new Set(dead.flatMap(({ runId }) => (journal.hasEntries(runId) ? [] : [runId])))
  const receiptOf = findReceipts(parts, dead)
  const interrupted = dead.flatMap((run) => {
    const entries = run.intents.length === 0 ? [] : readable(journal, run.runId)
    return run.intents.map((intent) => {
      const { callId, tool } = intent
      const written = receiptOf(run, intent)
      const call = interruptedCall(entries, callId, fateOf?.(run.runId, callId))
      const outcome = written ? outcomeOf(written, call.outcome) : call.outcome
      const keep = () => (written ? calls.settled : calls.done)(run, { id: callId, outcome }, forgotten.has(run.runId)).outcome.receipt
      const receipt = call.drop ? calls.undecided(run, call.drop, outcome) : keep()
      log('warn', 'interrupted tool call', { run: run.runId, call: callId, tool, ...(written ? { ended: written.status } : {}) })
      return { runId: run.runId, callId, tool, receipt }
    })
  })
  if (forgotten.size > 0) disown()
  for (const runId of forgotten) journal.forget(runId)
  const open = dead.filter(({ ended, runId }) => ended === null && !forgotten.has(runId))
  for (const run of open) {
    const thinking = run.intents.length === 0 && isThinking(readable(journal, run.runId))
    journal.append({ run, kind: 'note', type: 'interrupted', at: now(), body: { message, ...(thinking ? { thinking } : {}) } })
    end(run.runId, { at: now(), code: 'error', message, digest: null })
  }
  return { interrupted, closedRuns: open.map(({ runId }) => runId), adopted, tornBytes, undecided: [...undecided] }
}

/** Returns the outcome that a receipt stands for: an earlier recovery that died may have written it, and then it says what this one says. */
function outcomeOf(written: WrittenReceipt, recovered: ToolOutcome): ToolOutcome {
  return resultHashOf(recovered) === written.resultHash ? { ...recovered, receipt: written.id } : lostOutcome(written)
}

/** Tells whether the model was asked and had not answered; the usage of that call is not known. */
function isThinking(entries: readonly JournalEntry[]): boolean {
  const waiting = new Set<unknown>()
  const state = { thinking: false }
  for (const { type, body } of entries) {
    const start = type === 'run.start' && isObject(body) ? body.continues : undefined
    if (type === 'model.done' || type === 'judged') for (const id of proposedIn(body)) waiting.add(id)
    for (const id of proposedIn(start)) waiting.add(id)
    const isResult = (type === 'tool.done' || type === 'deny' || type === 'drop') && waiting.delete(idOf(body))
    state.thinking =
      (beginsCall.has(type) && waiting.size === 0) || (isResult && waiting.size === 0) || (state.thinking && !endsCall.has(type))
  }
  return state.thinking
}

const beginsCall: ReadonlySet<string> = new Set(['run.start', 'retry'])
const endsCall: ReadonlySet<string> = new Set(['model.done', 'model.fail', 'cancel', 'estop'])

function proposedIn(body: unknown): unknown[] {
  const proposals = isObject(body) && Array.isArray(body.proposals) ? body.proposals : []
  return proposals.flatMap((proposal: unknown) => (isObject(proposal) && isObject(proposal.call) ? [proposal.call.id] : []))
}

/** Tells whether a call of the run had ended and its changes were neither applied nor dropped. */
function hasOpenChanges(journal: Journal, { runId, intents }: DeadRuns[number]): boolean {
  if (intents.length === 0) return false
  const changed = new Set(readable(journal, runId).flatMap(({ type, body }) => (type === 'tool.changed' ? [idOf(body)] : [])))
  return intents.some(({ callId }) => changed.has(callId))
}

function idOf(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'id' in body ? body.id : undefined
}

/** Returns no entries when somebody damaged the journal, because that must not prevent the next start. */
function readable(journal: Journal, runId: string): JournalEntry[] {
  try {
    return journal.events(runId)
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

type DeadRuns = ReturnType<typeof deadRuns>

/**
 * The receipt of a call is written before its result is committed, so a crash in between leaves only the receipt. Each receipt matches one
 * call only: one that began before it, with equal conversation, tool, arguments, risk and approval.
 */
function findReceipts({ memory: { journal }, receiptsAfter }: RepairParts, dead: DeadRuns) {
  const begun = dead.flatMap(({ intents }) => intents.map(({ receiptsBefore }) => receiptsBefore))
  const left = begun.length === 0 ? [] : [...receiptsAfter(Math.min(...begun))]
  return (run: RunIdentity, intent: OpenIntent): WrittenReceipt | undefined => {
    const at = left.findIndex((receipt) => isOf(receipt, run, intent) && !journal.names(receipt.id, run.conversationId))
    return at < 0 ? undefined : left.splice(at, 1)[0]
  }
}

function isOf(
  receipt: WrittenReceipt,
  { conversationId }: RunIdentity,
  { tool, argsHash, risk, approval, receiptsBefore }: OpenIntent,
): boolean {
  return (
    receipt.seq > receiptsBefore &&
    receipt.argsHash === argsHash &&
    receipt.conversationId === conversationId.toWellFormed() &&
    receipt.tool === tool.toWellFormed() &&
    receipt.risk === risk &&
    receipt.approval === approval?.toWellFormed()
  )
}

/** With `drop` the call had ended and its changes were undecided. */
type InterruptedCall = { readonly outcome: ToolOutcome; readonly drop?: Extract<InternalEvent, { type: 'drop' }> }

type Changed = Extract<ExternalEvent, { type: 'tool.changed' }>

export const outcomeUnknown = 'interrupted: outcome unknown'

const unknownOutcome: ToolOutcome = { status: 'failed', output: '', error: outcomeUnknown }
const tooSoon = 'interrupted: the process ended before the changes were applied'
const noAnswer = 'interrupted: the process ended before the changes were decided'

/** Decides what is recorded of a call that a crash interrupted. @param entries the journal of the run; empty when it was cleared */
function interruptedCall(entries: readonly ReplayEntry[], callId: string, fate: Fate | undefined): InterruptedCall {
  const changed = entries.flatMap((entry) => changedIn(entry, callId)).at(-1)
  if (changed === undefined) return { outcome: unknownOutcome }
  const isBegun = entries.some(({ kind, type, body }) => kind === 'intent' && type === 'apply' && isAbout(body, callId))
  return isBegun ? { outcome: whileApplied(changed, fate) } : undecided(changed, fate)
}

function changedIn(entry: ReplayEntry, callId: string): Changed[] {
  const event = entry.type === 'tool.changed' ? externalOf(entry) : undefined
  return event?.type === 'tool.changed' && event.id === callId ? [event] : []
}

function isAbout(body: unknown, callId: string): boolean {
  return typeof body === 'object' && body !== null && 'id' in body && body.id === callId
}

function whileApplied({ outcome, review }: Changed, fate: Fate | undefined): ToolOutcome {
  if (fate === 'applied') return applied(outcome, review)
  return fate === undefined ? unknownOutcome : { ...notApplied(outcome, 'failed', ''), error: tooSoon }
}

function undecided({ id, call, judgement, outcome, review }: Changed, fate: Fate | undefined): InterruptedCall {
  const [by, changes] = fate === 'pending' ? ['approval.nobody', 'pending'] : ['interrupted', 'dropped']
  const drop = { type: 'drop', id, call, judgement, review, outcome, by, reason: noAnswer } as const
  return { drop, outcome: { ...outcome, status: 'denied', error: noAnswer, metadata: { ...outcome.metadata, changes } } }
}
