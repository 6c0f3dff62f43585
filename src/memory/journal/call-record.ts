/** Records the life of one call: its beginning, the application of its changes, and its one end with one receipt. */

import type { ReceiptDraft } from '../../receipts/contract.ts'
import type { ExternalEvent, InternalEvent, ToolOutcome } from '../../runtime/event.ts'
import { gateIdOf } from '../../runtime/gate-id.ts'
import { dropOutcome, isPending } from '../../runtime/outcome.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import type { ApprovalRequests } from '../approval-requests.ts'
import type { Journal, OpenIntent, ReadLabels } from './journal.ts'
import { argsHashOf, outcomeDraft, sandboxOf } from './receipt-draft.ts'

type Internal<Type extends InternalEvent['type']> = Extract<InternalEvent, { type: Type }>
type ToolDone = Extract<ExternalEvent, { type: 'tool.done' }>
export type CallResult = Pick<ToolDone, 'id' | 'outcome'>

export type CallRecordOptions = {
  readonly journal: Journal
  readonly approvals: ApprovalRequests
  readonly labels: Pick<ReadLabels, 'keep'>
  readonly now: () => number
  /** Removes secrets. */
  readonly clean: <T>(event: T) => T
  /** How many receipts the checkpoint knows. */
  readonly receiptsBefore: () => number
  /** @returns an empty object when receipts are off */
  readonly receiptOf: (run: RunIdentity, draft: Omit<ReceiptDraft, 'at' | 'conversationId'>) => { receipt?: string }
  /** Call it after an entry that may come after the end of its run. */
  readonly sealAgain: (runId: string) => void
  readonly noIntent: (message: string) => Error
}

export type CallRecord = ReturnType<typeof createCallRecord>

export function createCallRecord(options: CallRecordOptions) {
  const { journal, approvals, labels, now, clean, receiptsBefore, receiptOf, sealAgain, noIntent } = options

  function openIntent({ runId }: RunIdentity, callId: string): OpenIntent {
    const intent = journal.openIntent(runId, callId)
    if (intent) return intent
    throw noIntent(`call "${callId}" of run ${runId} has a result but was never begun, or has one already`)
  }

  /** Writes the receipt of a call that began. */
  function ended(run: RunIdentity, callId: string, outcome: ToolOutcome): { receipt?: string } {
    const { tool, argsHash, risk, approval, sandbox } = openIntent(run, callId)
    return receiptOf(run, { tool, argsHash, risk, ...(approval ? { approval } : {}), ...outcomeDraft(outcome), ...sandboxOf(sandbox) })
  }

  /** Works like `done` for a result whose receipt is in the log already. */
  function settled(run: RunIdentity, { id, outcome }: CallResult, forgotten: boolean): ToolDone {
    const done = { type: 'tool.done' as const, id, outcome }
    if (!forgotten) {
      journal.append({ run, kind: 'external', type: 'tool.done', at: now(), body: done })
      sealAgain(run.runId)
    }
    journal.settle(run.runId, id)
    return done
  }

  type DropNote = Internal<'drop'> & { readonly receipt?: string; readonly result?: ToolOutcome }

  function endByDrop(run: RunIdentity, drop: Internal<'drop'>, body: DropNote): string | undefined {
    journal.append({ run, kind: 'note', type: 'drop', at: now(), body })
    journal.settle(run.runId, drop.id)
    approvals.refused(gateIdOf(run.runId, drop.id, 'changes'), drop, !isPending(drop))
    return body.receipt
  }

  return {
    settled,
    /** @returns why the approval that it names cannot be used */
    begun(run: RunIdentity, act: Internal<'act'>): string | undefined {
      const body = clean(act)
      const { id, call, judgement, approval } = body
      journal.append({ run, kind: 'intent', type: 'act', at: now(), body })
      const begun = { runId: run.runId, callId: id, tool: call.name, risk: judgement.risk, argsHash: argsHashOf(call) }
      journal.begin({
        ...begun,
        approval: givenBy(approval, judgement) ?? null,
        sandbox: run.sandbox ?? null,
        receiptsBefore: receiptsBefore(),
      })
      if (judgement.labels) labels.keep(run.conversationId, judgement.labels)
      return approval === undefined ? undefined : approvals.use(gateIdOf(run.runId, act.id), act.judgement.plan)
    },
    /** @returns why the approval that it names cannot be used */
    applying(run: RunIdentity, apply: Internal<'apply'>): string | undefined {
      const body = clean(apply)
      const { id, review, approval } = body
      openIntent(run, id)
      journal.append({ run, kind: 'intent', type: 'apply', at: now(), body })
      const given = givenBy(approval, review)
      if (given === undefined) return undefined
      journal.approve(run.runId, id, given)
      return approvals.use(gateIdOf(run.runId, apply.id, 'changes'), review.digest)
    },
    /** Records the result of an act, or of the application of its changes. Journals nothing for a run that is `forgotten`. */
    done: (run: RunIdentity, { id, outcome }: CallResult, forgotten = false) =>
      settled(run, { id, outcome: { ...outcome, ...ended(run, id, outcome) } }, forgotten),
    /** @returns its receipt */
    denied(run: RunIdentity, deny: Internal<'deny'>): string | undefined {
      const body = clean(deny)
      const { call, judgement, by, reason } = body
      const outcome: ToolOutcome = { status: 'denied', output: '', error: `${by}: ${reason}` }
      const draft = { tool: call.name, argsHash: argsHashOf(call), risk: judgement.risk, ...outcomeDraft(outcome) }
      const written = receiptOf(run, { ...draft, ...sandboxOf(run.sandbox) })
      journal.append({ run, kind: 'note', type: 'deny', at: now(), body: { ...body, ...written } })
      approvals.refused(gateIdOf(run.runId, deny.id), deny)
      return written.receipt
    },
    /** @returns its receipt */
    dropped(run: RunIdentity, drop: Internal<'drop'>): string | undefined {
      const body = clean(drop)
      return endByDrop(run, drop, { ...body, ...ended(run, drop.id, dropOutcome(body)) })
    },
    /**
     * After a crash: ends a call whose changes were still undecided. `result` names its receipt if that is in the log. @returns its receipt
     */
    undecided(run: RunIdentity, drop: Internal<'drop'>, { receipt: known, ...result }: ToolOutcome): string | undefined {
      const { receipt } = known === undefined ? ended(run, drop.id, result) : { receipt: known }
      return endByDrop(run, drop, { ...drop, result, receipt })
    },
  }
}

/** Names the hook that asked, too, so that the receipt of the call does. */
const givenBy = (approval: string | undefined, { rule }: { readonly rule: string }) =>
  approval && rule.startsWith('hook.') ? `${approval} (${rule} asked)` : approval
