/** Gives the outcome of a call that ran on a private view of the workspace, by what became of its changes. */

import { isObject } from '../../kit/json.ts'
import type { InternalEvent, ToolOutcome } from '../event.ts'

type Drop = Extract<InternalEvent, { type: 'drop' }>

const fates = ['none', 'direct', 'dropped', 'pending']

/**
 * Returns what became of a call's changes: the digest of those that were applied, `none` when there were none, `dropped`, `pending` while
 * they wait for a person, `direct` when the call ran on the workspace itself. Undefined when the call started no confined child.
 */
export function changesOf(metadata: { readonly changes?: unknown } | undefined): string | undefined {
  const told = metadata?.changes
  return typeof told === 'string' && (fates.includes(told) || /^[0-9a-f]{64}$/.test(told)) ? told : undefined
}

/** The command's own failure stays a failure: what it changed until then is applied. */
export function applied(ran: ToolOutcome, { digest }: { readonly digest: string }): ToolOutcome {
  return withChanges(ran, digest)
}

/** The changes could not be applied, or may not be after all; nothing of them is in the workspace. */
export function notApplied(ran: ToolOutcome, status: 'failed' | 'denied', why: string): ToolOutcome {
  const error = `the command ran, but its changes were not applied: ${why}`
  return withChanges({ ...ran, status, error }, 'dropped')
}

/** A denial that keeps what the command printed. The journal's outcome may come from another program, so it is taken as it is. */
export function dropOutcome<Ran extends { readonly metadata?: unknown }>(drop: Pick<Drop, 'by' | 'reason'> & { readonly outcome: Ran }) {
  const { by, reason, outcome } = drop
  const metadata = { ...(isObject(outcome.metadata) ? outcome.metadata : {}), changes: isPending(drop) ? 'pending' : 'dropped' }
  return { ...outcome, status: 'denied' as const, error: `${by}: ${reason}`, metadata }
}

/** Nobody could be asked: the changes are kept until the approval expires, unless they could not be kept (`notKept`). */
export function isPending({ by, outcome }: Pick<Drop, 'by'> & { readonly outcome: { readonly metadata?: unknown } }): boolean {
  return by === 'approval.nobody' && !(isObject(outcome.metadata) && outcome.metadata.changes === 'dropped')
}

/** Marks the result of a call whose changes are lost unless they are applied in this run, because they could not be kept for a later yes. */
export function notKept(ran: ToolOutcome): ToolOutcome {
  return withChanges(ran, 'dropped')
}

function withChanges(outcome: ToolOutcome, changes: string): ToolOutcome {
  return { ...outcome, metadata: { ...outcome.metadata, changes } }
}
