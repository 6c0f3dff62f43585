/** Calls that a thread refuses: their acts stay blocked for ever, and one denial each is requested. Shared by every thread that says no. */

import type { Pattern } from '../../kernel/thread.ts'
import type { Proposal, RunEvent } from '../event.ts'

export type Refusal = Proposal & { readonly by: string; readonly reason: string }

export type Refusals = { readonly ids: readonly string[]; readonly pending: readonly Refusal[] }

export const noRefusals: Refusals = { ids: [], pending: [] }

export function refuse(refusals: Refusals, refusal: Refusal): Refusals {
  return { ids: [...refusals.ids, refusal.call.id], pending: [...refusals.pending, refusal] }
}

/** Whoever denied the call, it is denied: drop our own request for it. */
export function denied(refusals: Refusals, id: string): Refusals {
  return { ...refusals, pending: refusals.pending.filter(({ call }) => call.id !== id) }
}

export function blockedActs({ ids }: Refusals): Pattern<RunEvent>[] {
  return ids.map((id) => ({ type: 'act', id }))
}

export function denials({ pending }: Refusals): RunEvent[] {
  return pending.map(({ call, judgement, by, reason }) => ({ type: 'deny', id: call.id, call, judgement, by, reason }))
}
