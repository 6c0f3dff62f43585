/** Applies changes after the end of their run, when somebody approves them; the next start finds a crash in the middle. */

import type { Approval } from '../approval-table.ts'
import { thisProcess } from '../journal/process-owner.ts'
import type { Memory, PendingRow } from '../memory.ts'
import type { RecordWriter } from '../record-writer.ts'

/** `receipt` is absent when receipts are off. */
export type AppliedLater =
  | { readonly ok: true; readonly receipt?: string }
  | { readonly ok: false; readonly message: string; readonly receipt?: string }

/** The fate of a call's changes: they are in the workspace, they were discarded, or they still wait for a person. */
export type Fate = 'applied' | 'dropped' | 'pending'

/** Returns the fate of a call's changes; undefined when it is not known. */
export type FateOf = (runId: string, callId: string) => Fate | undefined

/** `changes`: the fate of changes that were not applied; absent when it is not known. */
type Applying = { readonly ok: true } | { readonly ok: false; readonly message: string; readonly changes?: 'pending' | 'dropped' }

const unknown = { error: 'interrupted: outcome unknown' }
const tooSoon = { error: 'interrupted: the process ended before the changes were applied', changes: 'dropped' }

type PendingMemory = Pick<Memory, 'pending' | 'journal' | 'approvals'>

export function createPendingChanges(
  { pending: table, journal, approvals }: PendingMemory,
  { transaction, recordAction }: Pick<RecordWriter, 'transaction' | 'recordAction'>,
) {
  /** Stores the approval, its use and this process as the one that applies the changes, before it applies anything. */
  function begin(id: string, by: string): Approval | string {
    return transaction(() => {
      const approval = approvals.get(id)
      if (approval === undefined) return `the approval "${id}" does not exist`
      if (approval.changes === 0) return `approval "${id}" is about a call that has not run; only its run can use it`
      if (!isPending(approval)) return `the run that asked has not dropped these changes; it takes the answer itself`
      const answered = approval.state === 'allowed' ? { ok: true as const } : approvals.decide({ id, allow: true, by })
      const used = answered.ok ? approvals.consume({ id, plan: approval.plan }) : answered
      if (!used.ok) return used.reason
      table.put({ id, by, owner: thisProcess() })
      return approval
    })
  }

  const isPending = ({ runId, callId }: Approval) => table.isDropped(runId, callId) || !journal.hasEntries(runId)

  type ChangeEnd = { readonly changes?: string; readonly error?: string }

  function end({ id, runId, callId, conversationId, plan }: Approval, by: string, how: ChangeEnd = { changes: plan }): string | undefined {
    return transaction(() => {
      table.remove(id)
      if (how.changes === 'pending') approvals.reopen(id)
      else if (how.error !== undefined) approvals.fail(id, how.error)
      const input = { approval: id, run: runId, call: callId, digest: plan, by }
      return recordAction({ conversationId, tool: 'changes.apply', input, risk: 'medium', ...how })
    })
  }

  function recoverOne({ id, by }: PendingRow, fateOf: FateOf): void {
    const approval = approvals.get(id)
    const fate = approval && fateOf(approval.runId, approval.callId)
    if (approval && fate === 'applied') end(approval, by)
    else if (approval && fate !== 'pending') end(approval, by, fate === 'dropped' ? tooSoon : unknown)
    else {
      table.remove(id)
      approvals.reopen(id)
    }
  }

  return {
    /**
     * Approves changes that wait, uses up that approval, applies them and writes one receipt. `apply` applies the change set of that
     * digest, all or none; when the changes still wait after it, the question is open again. @returns why nothing was applied, if so
     */
    async apply(id: string, by: string, apply: (approval: Approval) => Promise<Applying>): Promise<AppliedLater> {
      const approval = begin(id, by)
      if (typeof approval === 'string') return { ok: false, message: approval }
      const done = await apply(approval)
      const receipt = end(approval, by, done.ok ? undefined : failureOf(done))
      return { ...done, receipt }
    },
    /**
     * Writes the receipts of changes that dead processes applied, and reopens the questions about the others. @returns the runs that it
     * skipped, because the fate of their changes is not known
     */
    recover(fateOf: FateOf | undefined): readonly string[] {
      if (fateOf === undefined) return table.interrupted().map(({ id }) => id)
      for (const row of table.interrupted()) recoverOne(row, fateOf)
      return []
    },
  }
}

function failureOf({ message, changes }: Extract<Applying, { ok: false }>) {
  return { error: message, changes }
}
