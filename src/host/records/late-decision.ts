/** Applies a change set whose call ended because nobody could be asked: by an approval that came later, used up exactly once. */

import type { Approval } from '../../memory/approval-table.ts'
import { isAlive } from '../../memory/journal/process-owner.ts'
import type { Memory } from '../../memory/memory.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import type { Applied, SetSummary } from '../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import type { ChangeDecision } from '../api.ts'
import { FailureError } from '../failure.ts'
import { inRecordWords } from './integrity/recovery.ts'

export type LateDecision = {
  readonly record: Pick<RecordWriter, 'applyPending'>
  readonly store: Pick<ChangeStore, 'list' | 'apply'>
  readonly approval: Approval
  /** Who said yes. */
  readonly by: string
}

/** `yes`: the process that asked still waits for the answer and applies the changes itself. `crashed`: it died while it waited. */
export function isAwaited({ journal }: Memory, { runId, callId }: Approval): 'yes' | 'no' | 'crashed' {
  if (journal.openIntent(runId, callId) === undefined) return 'no'
  return isAlive(journal.run(runId)?.owner ?? '') ? 'yes' : 'crashed'
}

/** @returns undefined when the changes are no longer kept */
export function pendingSetOf(
  store: Pick<ChangeStore, 'list'>,
  { runId, callId }: Pick<Approval, 'runId' | 'callId'>,
): SetSummary | undefined {
  return store.list().find(({ state, about }) => state === 'pending' && about.run === runId && about.call === callId)
}

/**
 * The approval must be allowed already. It is used up before anything is applied, so that no second process can apply the set again; a crash
 * in between is found at the next start, which writes the receipt.
 * @throws FailureError `error` when the approval cannot be used, or the changes are gone or are others than those that were shown
 */
export async function applyLate({ record, store, approval, by }: LateDecision): Promise<Applied> {
  const set = pendingSetOf(store, approval)
  if (!set) throw new FailureError('error', `the changes of ${approval.id} are no longer kept; ask the agent again`)
  if (set.review?.digest !== approval.plan)
    throw new FailureError('error', `the kept changes of ${approval.id} are not those that the approval is for; nothing was applied`)
  const done: { applied?: Applied } = {}
  const kept = await record.applyPending(approval.id, by, async () => {
    const applied = await store.apply({ id: set.id })
    done.applied = applied
    return applied.ok ? applied : { ...applied, ...fateOf(store, set.id) }
  })
  if (done.applied === undefined) throw new FailureError('error', kept.ok ? 'nothing was applied' : kept.message)
  return done.applied.ok || pendingSetOf(store, approval) === undefined ? done.applied : stillWaiting(done.applied, approval)
}

/** A set that is stuck is neither dropped nor pending. */
function fateOf(store: LateDecision['store'], id: string): { readonly changes?: 'pending' | 'dropped' } {
  const left = store.list().find((set) => set.id === id)
  if (left === undefined) return { changes: 'dropped' }
  return left.state === 'pending' ? { changes: 'pending' } : {}
}

function stillWaiting<Failed extends { readonly message: string }>(failed: Failed, { id, expires }: Approval): Failed {
  const until = new Date(expires).toISOString()
  const next = `The changes still wait, until ${until}: when that is settled, "approvals allow ${id}" tries again; "approvals deny ${id}" drops them`
  return { ...failed, message: `${failed.message}. ${next}` }
}

/** Does with a change set what the operator decided, and leaves a receipt of it. @throws FailureError before it, when there can be none */
export async function withReceipt<Done extends { readonly ok: boolean }>(
  record: RecordWriter,
  { tool, set, paths }: ChangeDecision,
  act: () => Promise<Done>,
): Promise<Done> {
  inRecordWords(record.proveReceipts)
  const done = await act()
  if (done.ok) recordDecision(record, tool, set, paths ? { paths } : {})
  return done
}

function recordDecision(
  record: RecordWriter,
  tool: `changes.${string}`,
  set: SetSummary,
  more: { readonly paths?: readonly string[] } = {},
): void {
  const { about, count, review } = set
  const input = {
    run: about.run,
    call: about.call,
    changes: count,
    ...(review ? { digest: review.digest } : {}),
    ...(more.paths ? { paths: [...more.paths] } : {}),
  }
  inRecordWords(() => record.recordAction({ conversationId: about.conversation, tool, input, risk: 'medium' }))
}
