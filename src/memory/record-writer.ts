/** Writes the durable record of runs: journal, receipts, approvals and checkpoint change together or not at all. */

import type { JsonObject } from '../kit/json.ts'
import type { AppendResult, Checkpoint, Ledger, OpenLedger, ReceiptDraft, Seal, WrittenReceipt } from '../receipts/contract.ts'
import type { ExternalEvent, InternalEvent, Risk } from '../runtime/event.ts'
import type { Clock, Committed, Decision, Log, RecordEntry, Recorder, RunIdentity } from '../runtime/port.ts'
import { createApprovalRequests } from './approval-requests.ts'
import type { LockWait } from './commit-queue.ts'
import { type CommitQueue, createCommitQueue } from './commit-queue.ts'
import { type CallRecord, createCallRecord } from './journal/call-record.ts'
import { deadRuns, type Journal } from './journal/journal.ts'
import { argsHashOf, outcomeDraft, sandboxOf } from './journal/receipt-draft.ts'
import type { Memory } from './memory.ts'
import { storageFailure } from './storage-failure.ts'
import type { WaitLength } from './store.ts'

/** The receipts log. `begin` is called inside the database's write transaction, which is the lock between processes. */
export type ReceiptPort = {
  /** Loads `begin` and `after`; absent when both can be called at once. */
  readonly prepare?: () => Promise<void>
  readonly begin: OpenLedger
  /** Returns the receipts with a number above `count`, oldest first. */
  readonly after: (count: number) => readonly WrittenReceipt[]
  /** Tells, without writing, whether log and checkpoint agree. Without it, every start reconciles them under the lock. */
  readonly isConsistent?: (checkpoint: Checkpoint | undefined) => boolean
  /** Seals the end of a run. */
  readonly seal?: Seal
}

export type RecordWriterOptions = {
  readonly memory: Memory
  /** Absent when receipts are switched off in the configuration. */
  readonly receipts?: ReceiptPort
  readonly log: Log
  readonly now: Clock
  /** Removes secrets from every text of an event; returns the event itself when it contains none. */
  readonly redact: <T>(event: T) => T
}

/** Errors of the disk, or of the moment, not of the data on it. */
const harmless = ['full', 'locked', 'read_only', 'unreadable', 'replaced', 'superseded']

/**
 * Thrown by a recorder when the record cannot be stored; the database then contains nothing of that step. The run ends with `integrity`
 * when stored data was altered, with `error` when the disk failed.
 */
export class RecordFailure extends Error {
  override readonly name = 'RecordFailure'
  get integrity(): boolean {
    return !harmless.includes(this.code)
  }
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** An operator's action outside of any run, recorded permanently; `input` contains its arguments. */
type OperatorAction = {
  readonly conversationId: string
  readonly tool: string
  readonly input: JsonObject
  readonly risk: Risk
  readonly sandbox?: 'none'
  /** The fate of the changes that the action applied, and why they were not applied, if so. */
  readonly changes?: string
  readonly error?: string
  /** Set together with `error`: the action was refused and nothing happened. */
  readonly denied?: true
}

export type RecordWriter = {
  /** Writes one batch in its own transaction, or in the current one. On disk when that transaction ends. @throws RecordFailure */
  write(run: RunIdentity, batch: readonly RecordEntry[]): Committed
  /**
   * Runs several writes in one transaction, with one sync of the receipts. A failure undoes all of them. `waiting`: see Store; giving up
   * fails with `locked` before `body` starts. @throws RecordFailure
   */
  transaction<T>(body: () => T, waiting?: WaitLength): T
  /** Within a transaction: undoes only `body` if it throws. */
  separate<T>(body: () => T): T
  /** Ends a run whose last entry is journalled, and seals it. */
  readonly end: Journal['end']
  /** Call it after the commit: updates the files of the run's agent. */
  follow(run: RunIdentity): void
  /** Call it when nothing more of this run will be committed. */
  abandon(run: RunIdentity): void
  /** Tells whether a start has nothing to repair, which most have not; checked without the lock. @throws RecordFailure */
  isAtRest(): boolean
  /** Runs the repair after a crash in one transaction. @throws RecordFailure */
  repair<T>(body: (parts: RepairParts) => T): T
  /** Call it before the first method that may write a receipt or repairs: a turn without calls does not load the receipts log. */
  prepare(): Promise<void>
  /**
   * Call it before an act whose receipt comes after it. The writer does so itself for the acts of a run. @throws RecordFailure when no
   * receipt can be written
   */
  proveReceipts(): void
  /** @returns the id of its receipt; undefined when receipts are off */
  recordAction(recordAction: OperatorAction): string | undefined
}

/** Holds the parts that a repair after a crash needs. */
export type RepairParts = {
  readonly memory: Memory
  readonly log: Log
  readonly now: Clock
  /** Ends a run whose last entry is journalled. */
  readonly end: Journal['end']
  readonly calls: Pick<CallRecord, 'done' | 'settled' | 'undecided'>
  /** Returns the receipts with a number above `count`, oldest first. */
  readonly receiptsAfter: (count: number) => readonly WrittenReceipt[]
  /** Reconciles the receipts log with the checkpoint. Call it first. */
  readonly settle: () => { readonly adopted: number; readonly tornBytes: number }
  /** Accounts for the receipts that were just written: some no longer belong to a run. */
  readonly disown: () => void
}

export function createRecordWriter(options: RecordWriterOptions): RecordWriter {
  const { memory, receipts, log, now, redact: withoutSecrets } = options
  const { journal } = memory
  const approvals = createApprovalRequests(memory.approvals, withoutSecrets)
  const calls = createCallRecord({
    journal,
    approvals,
    labels: memory.labels,
    now,
    clean: withoutSecrets,
    receiptsBefore: () => memory.checkpoint.get()?.count ?? 0,
    receiptOf,
    sealAgain: (runId) => void (receipts?.seal && journal.sealAgain(runId, receipts.seal)),
    noIntent: (message) => new RecordFailure('no_intent', message),
  })
  /** The ledger of the current transaction, from its first receipt on. */
  let ledger: Ledger | undefined
  /** The last receipts could not be written. */
  let hasFailed = false
  let underWay = false

  function write(run: RunIdentity, batch: readonly RecordEntry[]): Committed {
    return transaction(() => {
      const committed = { receipts: new Map<string, string>(), earlier: new Map<string, Decision>(), unusable: new Map<string, string>() }
      for (const entry of batch) keep(run, entry, committed)
      return committed
    })
  }

  function keep(run: RunIdentity, entry: RecordEntry, { receipts, earlier, unusable }: Mutable): void {
    if (entry.kind === 'intent' || entry.kind === 'apply') proveReceipts()
    const put = (map: Map<string, string>, id: string, value: string | undefined) => void (value !== undefined && map.set(id, value))
    if (entry.kind === 'external') put(receipts, 'id' in entry.event ? entry.event.id : '', external(run, entry.event))
    else if (entry.kind === 'intent') put(unusable, entry.act.id, calls.begun(run, entry.act))
    else if (entry.kind === 'denied') put(receipts, entry.deny.id, calls.denied(run, entry.deny))
    else if (entry.kind === 'apply') put(unusable, entry.apply.id, calls.applying(run, entry.apply))
    else if (entry.kind === 'dropped') put(receipts, entry.drop.id, calls.dropped(run, entry.drop))
    else if (entry.kind === 'gate') {
      journal.append({
        run,
        kind: 'note',
        type: 'gate.open',
        at: now(),
        body: { type: 'gate.open', id: entry.gate.id, expires: entry.expires },
      })
      const given = approvals.opened(run, entry.gate, entry.expires)
      if (given) earlier.set(entry.gate.id, given)
    } else if (entry.kind === 'retry') journal.append({ run, kind: 'note', type: 'retry', at: now(), body: withoutSecrets(entry.retry) })
    else finished(run, entry.finish, entry.digest)
  }

  /** @returns the receipt of a result */
  function external(run: RunIdentity, event: ExternalEvent): string | undefined {
    const clean = withoutSecrets(event)
    if (clean.type === 'run.start' && clean.continues) assertLatest(run, clean.continues.run)
    if (clean.type === 'run.start') memory.files.begin(run, { now, redact: withoutSecrets })
    if (clean.type === 'tool.done') return calls.done(run, clean).outcome.receipt
    journal.append({ run, kind: 'external', type: clean.type, at: now(), body: clean })
    if (clean.type === 'approval.decision') approvals.decided(run, clean)
  }

  /** Lets only one of several processes continue a turn: it runs under the write lock, and the second one fails. */
  function assertLatest({ conversationId, runId }: RunIdentity, continued: string): void {
    const latest = journal.latestTurn(conversationId, runId)
    if (latest?.runId === continued && latest.ended !== null && journal.unfinished().every((each) => each.runId !== continued)) return
    throw new RecordFailure('superseded', `nothing was done: a later turn of this conversation began after ${continued}`)
  }

  function finished(run: RunIdentity, finish: Extract<InternalEvent, { type: 'finish' }>, digest: string): void {
    const clean = withoutSecrets(finish)
    const { code, message } = clean.ending
    journal.append({ run, kind: 'note', type: 'finish', at: now(), body: { ...clean, digest } })
    end(run.runId, { at: now(), code, message, digest })
  }

  /** Call it when the run's last entry is in the journal. */
  function end(runId: string, how: Parameters<typeof journal.end>[1]): void {
    journal.end(runId, how)
    if (receipts?.seal) journal.sealEnd(runId, receipts.seal)
  }

  function recordAction({ conversationId, tool, input, risk, sandbox, changes, error, denied }: OperatorAction): string | undefined {
    const clean = withoutSecrets(input)
    const outcome = { output: '', ...(changes ? { metadata: { changes } } : {}), ...actionEnd(error, denied) }
    const what = { tool, argsHash: argsHashOf({ input: clean }), risk, approval: 'operator' }
    return transaction(() => {
      const { receipt } = receiptOf({ conversationId }, { ...what, ...outcomeDraft(outcome), ...sandboxOf(sandbox) })
      if (receipt !== undefined) memory.actions.keep(receipt, clean)
      memory.note(tool, { conversationId, input: clean, ...whatBecame({ changes, error }), receipt })
      return receipt
    })
  }

  /** The receipt is written at the end of the transaction with the result. @returns an empty object when receipts are off */
  function receiptOf(run: Pick<RunIdentity, 'conversationId'>, draft: Omit<ReceiptDraft, 'at' | 'conversationId'>): { receipt?: string } {
    if (!receipts) return {}
    ledger ??= openLedger(receipts)
    return { receipt: ledger.add({ ...draft, at: now(), conversationId: run.conversationId }) }
  }

  function proveReceipts(): void {
    if (!receipts) return
    transaction(() =>
      beforeActs(() => {
        ledger ??= openLedger(receipts)
        const proof = ledger.prove(hasFailed)
        if (!proof.ok) throw new RecordFailure(proof.failure.code, proof.failure.message)
        hasFailed = false
      }),
    )
  }

  function openLedger(port: ReceiptPort): Ledger {
    const known = memory.checkpoint.get()
    const opened = port.begin(known, memory.checkpoint.ownLog())
    if (!opened.ok) throw new RecordFailure(opened.failure.code, opened.failure.message)
    return opened.ledger
  }

  /** Records adopted receipts before everything else. */
  function settle(): ReturnType<RepairParts['settle']> {
    if (!receipts || receipts.isConsistent?.(memory.checkpoint.get())) return { adopted: 0, tornBytes: 0 }
    ledger ??= beforeActs(() => openLedger(receipts))
    return ledger
  }

  function disown(): void {
    ledger?.disown()
  }

  /** Stores the checkpoint together with the log. */
  function adopt(appended: AppendResult): Extract<AppendResult, { ok: true }> {
    hasFailed = !appended.ok
    if (!appended.ok) throw new RecordFailure(appended.failure.code, appended.failure.message)
    const { checkpoint, adopted, tornBytes } = appended
    if (checkpoint && checkpoint.mac !== memory.checkpoint.get()?.mac) memory.checkpoint.put(checkpoint)
    if (adopted > 0) log('warn', 'receipts adopted after a crash', { count: adopted, upTo: checkpoint?.count })
    if (tornBytes > 0) log('warn', 'torn receipt removed after a crash', { bytes: tornBytes })
    return appended
  }

  function isAtRest(): boolean {
    const resting = receipts === undefined || receipts.isConsistent?.(guarded(memory.checkpoint.get)) === true
    return resting && guarded(() => deadRuns(journal).length === 0 && memory.pending.interrupted().length === 0)
  }

  function repair<T>(body: (parts: RepairParts) => T): T {
    const receiptsAfter = receipts?.after ?? (() => [])
    return transaction(() => body({ memory, log, now, end, calls, receiptsAfter, settle, disown }))
  }

  /** Appends the receipts last, directly before the commit: a failure leaves nothing in the database and nothing in the log. */
  function transaction<T>(body: () => T, waiting?: WaitLength): T {
    if (underWay) return body()
    return guarded(() => {
      underWay = true
      try {
        return memory.transaction(() => {
          const result = body()
          if (ledger && (ledger.count() > 0 || ledger.tornBytes > 0)) adopt(ledger.write())
          return result
        }, waiting)
      } finally {
        underWay = false
        ledger?.close()
        ledger = undefined
      }
    })
  }

  function separate<T>(body: () => T): T {
    const before = ledger?.count() ?? 0
    try {
      return memory.separate(body)
    } catch (error) {
      ledger?.cut(before)
      throw error
    }
  }

  /** Rethrows storage errors as RecordFailure for the runtime. */
  function guarded<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      const failure = storageFailure(memory.path, error)
      throw failure ? new RecordFailure(failure.code, failure.message) : error
    }
  }

  return {
    write,
    transaction,
    separate,
    proveReceipts,
    recordAction,
    isAtRest,
    repair,
    end,
    prepare: async () => await receipts?.prepare?.(),
    follow: memory.files.flush,
    abandon: memory.files.drop,
  }
}

/** Marks a failure that came before any act, so that the caller does not take the act for done. */
function beforeActs<T>(step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof RecordFailure) || error.integrity) throw error
    throw new RecordFailure('no_receipt', `nothing was done, because no receipt of it could be kept: ${error.message}`)
  }
}

function mayNeedReceipt(entry: RecordEntry): boolean {
  return entry.kind === 'external' ? entry.event.type === 'tool.done' : entry.kind !== 'gate' && entry.kind !== 'finish'
}

type ActionEnd = { readonly status: 'allowed' } | { readonly status: 'failed' | 'denied'; readonly error: string }

function actionEnd(error: string | undefined, denied = false): ActionEnd {
  return error === undefined ? { status: 'allowed' } : { status: denied ? 'denied' : 'failed', error }
}

function whatBecame({ changes, error }: Pick<OperatorAction, 'changes' | 'error'>): JsonObject {
  return { ...(changes === undefined ? {} : { changes }), ...(error === undefined ? {} : { error }) }
}

type Mutable = { readonly receipts: Map<string, string>; readonly earlier: Map<string, Decision>; readonly unusable: Map<string, string> }

/** `add` writes data that belongs to no run. */
export type OneWriter = Recorder & CommitQueue

/**
 * Writes for all runs of a process: the commits within one turn of the event loop share one transaction. `lockWait`: how to wait for other
 * processes without blocking the event loop. `committed` is called after each batch is on disk.
 */
export function createRecorder(
  { write, transaction, separate, follow, abandon, prepare }: RecordWriter,
  { lockWait, committed: notify = () => {} }: { readonly lockWait: () => LockWait; readonly committed?: () => void },
): OneWriter {
  const endsGroup = (error: unknown) => !(error instanceof RecordFailure && ['no_intent', 'no_receipt', 'superseded'].includes(error.code))
  const isLocked = (error: unknown) => error instanceof RecordFailure && error.code === 'locked'
  const queue = createCommitQueue({ transaction: (body) => transaction(body, 'briefly'), separate, endsGroup, isLocked, lockWait })
  async function commit(run: RunIdentity, batch: readonly RecordEntry[]): Promise<Committed> {
    const add = () => queue.add(() => write(run, batch))
    const committed = await (batch.some(mayNeedReceipt) ? prepare().then(add) : add()).catch((error: unknown) => {
      abandon(run)
      throw error
    })
    follow(run)
    notify()
    return committed
  }

  return { commit, add: queue.add }
}
