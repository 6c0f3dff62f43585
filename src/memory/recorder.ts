/** The durable record of runs: journal, receipts and checkpoint move together or not at all. */

import type { JsonObject } from '../kit/json.ts'
import type { ExternalEvent, InternalEvent, Risk, ToolOutcome } from '../runtime/event.ts'
import type { Clock, Log, Recorder, RunIdentity } from '../runtime/port.ts'
import type { Appended, AppendReceipt, Checkpoint, ReceiptDraft, WrittenReceipt } from './checkpoint.ts'
import type { Memory } from './db.ts'
import { argsHashOf, outcomeDraft, sandboxOf } from './draft.ts'
import { storageFailure } from './failure.ts'
import { deadRuns, type Recovery, recoverRuns } from './recover.ts'

export type RecorderOptions = {
  readonly memory: Memory
  /** Absent when receipts are switched off in the configuration. */
  readonly receipt?: AppendReceipt
  /** What every receipt of this program says, whatever the call: commands run unconfined because somebody asked for that. */
  readonly sandbox?: 'none'
  /** The receipts of the log with a number above `count`, oldest first. Absent when receipts are switched off. */
  readonly receiptsAfter?: (count: number) => readonly WrittenReceipt[]
  /** Whether log and checkpoint agree, found by reading alone. Absent: every start settles them under the lock. */
  readonly atRest?: (checkpoint: Checkpoint | undefined) => boolean
  readonly log: Log
  readonly now: Clock
  /** Takes secrets out of every text of an event; the event itself when there are none. */
  readonly redact: <T>(event: T) => T
}

type ToolDone = Extract<ExternalEvent, { type: 'tool.done' }>

/** Trouble with the disk, not with what stands on it. */
const ofTheDisk = ['full', 'locked', 'read_only', 'unreadable']

/**
 * Thrown by a recorder when the record cannot be kept; nothing of that step is then in the database. The run ends `integrity` when what
 * is kept was altered, `error` when it is the disk's fault.
 */
export class RecordFailure extends Error {
  override readonly name = 'RecordFailure'
  get integrity(): boolean {
    return !ofTheDisk.includes(this.code)
  }
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** What an operator did outside of any run, to be kept for good: `input` says with what. */
export type Deed = { readonly conversationId: string; readonly tool: string; readonly input: JsonObject; readonly risk: Risk }

/** Besides the port: `recover`, to be called once at start. It leaves alone what a living process is about. */
export type RunRecorder = Recorder & {
  recover(): Recovery
  /** @returns the id of its receipt; undefined when receipts are off */
  deed(deed: Deed): string | undefined
}

export function createRecorder(options: RecorderOptions): RunRecorder {
  const { memory, receipt, log, now, redact: withoutSecrets, sandbox: always } = options
  const { journal } = memory

  function external(run: RunIdentity, event: ExternalEvent): ExternalEvent {
    const clean = withoutSecrets(event)
    return keep(() => {
      if (clean.type === 'tool.done') return toolDone(run, clean)
      journal.append({ run, kind: 'external', type: clean.type, at: now(), body: clean })
      return clean
    })
  }

  function toolDone(run: RunIdentity, { id, outcome }: Pick<ToolDone, 'id' | 'outcome'>, forgotten = false): ToolDone {
    const intent = journal.openIntent(run.runId, id)
    if (!intent)
      throw new RecordFailure('no_intent', `call "${id}" of run ${run.runId} has a result but was never begun, or has one already`)
    const { tool, argsHash, risk, approval, sandbox } = intent
    const receipt = write(run, { tool, argsHash, risk, ...(approval ? { approval } : {}), ...outcomeDraft(outcome), ...sandboxOf(sandbox) })
    return settleCall(run, { id, outcome: { ...outcome, ...receipt } }, forgotten)
  }

  /** Journals the result of a call whose receipt is in the log, unless the run is `forgotten`. */
  function settleCall(run: RunIdentity, { id, outcome }: Pick<ToolDone, 'id' | 'outcome'>, forgotten: boolean): ToolDone {
    const done = { type: 'tool.done' as const, id, outcome }
    if (!forgotten) journal.append({ run, kind: 'external', type: 'tool.done', at: now(), body: done })
    journal.settle(run.runId, id)
    return done
  }

  function intent(run: RunIdentity, act: Extract<InternalEvent, { type: 'act' }>): void {
    const clean = withoutSecrets(act)
    const { id, call, judgement, approval } = clean
    keep(() => {
      journal.append({ run, kind: 'intent', type: 'act', at: now(), body: clean })
      const begun = { runId: run.runId, callId: id, tool: call.name, risk: judgement.risk, argsHash: argsHashOf(call) }
      const receiptsBefore = memory.checkpoint.get()?.count ?? 0
      journal.begin({ ...begun, approval: approval ?? null, sandbox: always ?? null, receiptsBefore })
    })
  }

  function denied(run: RunIdentity, deny: Extract<InternalEvent, { type: 'deny' }>): string | undefined {
    const clean = withoutSecrets(deny)
    const { call, judgement, by, reason } = clean
    const outcome: ToolOutcome = { status: 'denied', output: '', error: `${by}: ${reason}` }
    return keep(() => {
      const draft = { tool: call.name, argsHash: argsHashOf(call), risk: judgement.risk, ...outcomeDraft(outcome), ...sandboxOf(always) }
      const written = write(run, draft)
      journal.append({ run, kind: 'note', type: 'deny', at: now(), body: { ...clean, ...written } })
      return written.receipt
    })
  }

  function finished(run: RunIdentity, finish: Extract<InternalEvent, { type: 'finish' }>, digest: string): void {
    const clean = withoutSecrets(finish)
    const { code, message } = clean.ending
    keep(() => {
      journal.append({ run, kind: 'note', type: 'finish', at: now(), body: { ...clean, digest } })
      journal.end(run.runId, { at: now(), code, message, digest })
    })
    log('info', 'memory persisted', { conversation: run.conversationId, run: run.runId })
  }

  function deed({ conversationId, tool, input, risk }: Deed): string | undefined {
    const outcome: ToolOutcome = { status: 'allowed', output: '' }
    const what = { tool, argsHash: argsHashOf({ input: withoutSecrets(input) }), risk, approval: 'operator' }
    return keep(() => write({ conversationId }, { ...what, ...outcomeDraft(outcome), ...sandboxOf(always) }).receipt)
  }

  /** To disk, inside the transaction that holds the result. @returns nothing when receipts are off. */
  function write(run: Pick<RunIdentity, 'conversationId'>, draft: Omit<ReceiptDraft, 'at' | 'conversationId'>): { receipt?: string } {
    const [id] = settle([{ ...draft, at: now(), conversationId: run.conversationId }]).receiptIds
    return id ? { receipt: id } : {}
  }

  function settle(drafts: readonly ReceiptDraft[]): Omit<Extract<Appended, { ok: true }>, 'ok' | 'checkpoint'> {
    if (!receipt) return { receiptIds: [], adopted: 0, tornBytes: 0 }
    const before = memory.checkpoint.get()
    const appended = receipt(drafts, before)
    if (!appended.ok) throw new RecordFailure(appended.failure.code, appended.failure.message)
    const { checkpoint } = appended
    if (checkpoint && checkpoint.mac !== before?.mac) memory.checkpoint.put(checkpoint)
    for (const id of appended.receiptIds) log('info', 'receipt written', { receipt: id })
    if (appended.adopted > 0) log('warn', 'receipts adopted after a crash', { count: appended.adopted, upTo: checkpoint?.count })
    if (appended.tornBytes > 0) log('warn', 'torn receipt removed after a crash', { bytes: appended.tornBytes })
    return appended
  }

  /** Most starts find nothing to put right, and see that without the lock. */
  function recover(): Recovery {
    const resting = receipt === undefined || options.atRest?.(guarded(memory.checkpoint.get)) === true
    if (resting && guarded(() => deadRuns(journal)).length === 0) return { interrupted: [], closedRuns: [], adopted: 0, tornBytes: 0 }
    const { receiptsAfter = () => [] } = options
    return keep(() => recoverRuns({ journal, log, now, toolDone, settleCall, receiptsAfter, settle: () => settle([]) }))
  }

  /** One transaction. Whatever fails in it leaves no trace in the database. */
  function keep<T>(step: () => T): T {
    return guarded(() => memory.transaction(step))
  }

  /** Storage trouble reaches the runtime as a RecordFailure. */
  function guarded<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      const failure = storageFailure(memory.path, error)
      throw failure ? new RecordFailure(failure.code, failure.message) : error
    }
  }

  return { external, intent, denied, finished, deed, recover, together: keep }
}
