/** Keeps the calls that a thread refuses: it blocks their acts forever and requests one denial for each. All refusing threads share it. */

import type { Pattern } from '../../kernel/thread.ts'
import type { Proposal, RunEvent } from '../event.ts'

export type Refusal = Proposal & { readonly by: string; readonly reason: string }

export type Refusals = { readonly ids: readonly string[]; readonly pending: readonly Refusal[] }

export const noRefusals: Refusals = { ids: [], pending: [] }

export function refuse(refusals: Refusals, refusal: Refusal): Refusals {
  return { ids: [...refusals.ids, refusal.call.id], pending: [...refusals.pending, refusal] }
}

/** Drops the pending request for a denial once any thread has denied the call. */
export function denied(refusals: Refusals, id: string): Refusals {
  return { ...refusals, pending: refusals.pending.filter(({ call }) => call.id !== id) }
}

export function blockedActs({ ids }: Refusals): Pattern<RunEvent>[] {
  return ids.map((id) => ({ type: 'act', id }))
}

export function denials({ pending }: Refusals): RunEvent[] {
  return pending.map(({ call, judgement, by, reason }) => ({ type: 'deny', id: call.id, call, judgement, by, reason }))
}
