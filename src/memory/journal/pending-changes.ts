/** Applies changes after the end of their run, when somebody approves them; the next start finds a crash in the middle. */

import type { JsonObject } from '../../kit/json.ts'
import type { Approval, Approvals } from '../approval-table.ts'
import type { Store } from '../store.ts'
import type { Fate } from './interrupted-runs.ts'
import type { Journal } from './journal.ts'
import { isAlive, thisProcess } from './process-owner.ts'

/** `receipt` is absent when receipts are off. */
export type AppliedLater =
  | { readonly ok: true; readonly receipt?: string }
  | { readonly ok: false; readonly message: string; readonly receipt?: string }

export type PendingChanges = ReturnType<typeof createPendingChanges>

type FateOf = (runId: string, callId: string) => Fate | undefined

/** `changes`: the fate of changes that were not applied; absent when it is not known. */
type Applying = { readonly ok: true } | { readonly ok: false; readonly message: string; readonly changes?: 'pending' | 'dropped' }

/** An operator's action with its result. */
export type ChangeAction = {
  readonly conversationId: string
  readonly tool: 'changes.apply'
  readonly input: JsonObject
  readonly risk: 'medium'
  readonly changes?: string
  readonly error?: string
}

/** The changes that are being applied after the end of their run: the approval, who gave it, and the process that applies them. */
export type PendingTable = ReturnType<typeof createPendingTable>

type PendingRow = { readonly id: string; readonly by: string; readonly owner: string }

export function createPendingTable(store: Store) {
  const dropped = `SELECT 1 AS one FROM journal WHERE run_id = ? AND type = 'drop' AND json_extract(body, '$.id') = ? LIMIT 1`
  return {
    put: ({ id, by, owner }: PendingRow) =>
      void store.sql<never, [string, string, string]>('INSERT INTO applying(id, by, owner) VALUES (?, ?, ?)').run(id, by, owner),
    remove: (id: string) => void store.sql<never, [string]>('DELETE FROM applying WHERE id = ?').run(id),
    rows: () => store.sql<PendingRow, []>('SELECT id, by, owner FROM applying').all(),
    /** Tells whether the run has dropped the changes of that call. */
    isDropped: (runId: string, callId: string) => store.sql<{ one: number }, [string, string]>(dropped).get(runId, callId) !== null,
  }
}

export type PendingChangesOptions = {
  readonly table: PendingTable
  readonly journal: Journal
  readonly approvals: Approvals
  readonly transaction: <T>(body: () => T) => T
  readonly record: (action: ChangeAction) => string | undefined
}

const unknown = { error: 'interrupted: outcome unknown' }
const tooSoon = { error: 'interrupted: the process ended before the changes were applied', changes: 'dropped' }

export function createPendingChanges({ table, journal, approvals, transaction, record }: PendingChangesOptions) {
  /** Stores the approval, its use and this process as the one that applies the changes, before it applies anything. */
  function begin(id: string, by: string): Approval | string {
    return transaction(() => {
      const approval = approvals.get(id)
      if (approval === undefined) return `there is no approval "${id}"`
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

  type ChangeEnd = Pick<ChangeAction, 'changes' | 'error'>

  function end({ id, runId, callId, conversationId, plan }: Approval, by: string, how: ChangeEnd = { changes: plan }): string | undefined {
    return transaction(() => {
      table.remove(id)
      if (how.changes === 'pending') approvals.reopen(id)
      else if (how.error !== undefined) approvals.fail(id, how.error)
      const input = { approval: id, run: runId, call: callId, digest: plan, by }
      return record({ conversationId, tool: 'changes.apply', input, risk: 'medium', ...how })
    })
  }

  const interrupted = () => table.rows().filter(({ owner }) => !isAlive(owner))

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
    /** Tells whether a process that no longer exists was applying changes. */
    isInterrupted: () => interrupted().length > 0,
    /**
     * Writes the receipts of changes that dead processes applied, and reopens the questions about the others. @returns the runs that it
     * skipped, because the fate of their changes is not known
     */
    recover(fateOf: FateOf | undefined): readonly string[] {
      if (fateOf === undefined) return interrupted().map(({ id }) => id)
      for (const row of interrupted()) recoverOne(row, fateOf)
      return []
    },
  }
}

function failureOf({ message, changes }: Extract<Applying, { ok: false }>) {
  return { error: message, changes }
}
