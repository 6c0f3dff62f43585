/** Keeps what a thread refuses: it blocks those effects forever and requests one denial or drop for each. All refusing threads share it. */

import type { Pattern } from '../../kernel/thread.ts'
import type { Changed, Proposal, RunEvent } from '../event.ts'

/** With `changed` it refuses the changes of a call that has run, otherwise the call itself. */
export type Refusal = Proposal & { readonly by: string; readonly reason: string; readonly changed?: Changed }

export type Refusals = { readonly ids: readonly string[]; readonly pending: readonly Refusal[] }

export const noRefusals: Refusals = { ids: [], pending: [] }

export function refuse(refusals: Refusals, refusal: Refusal): Refusals {
  return { ids: [...refusals.ids, refusal.call.id], pending: [...refusals.pending, refusal] }
}

/** Drops the pending request once any thread has denied the call or dropped its changes. */
export function denied(refusals: Refusals, id: string): Refusals {
  return { ...refusals, pending: refusals.pending.filter(({ call }) => call.id !== id) }
}

export function blockedEffects({ ids }: Refusals): Pattern<RunEvent>[] {
  return ids.flatMap((id): Pattern<RunEvent>[] => [
    { type: 'act', id },
    { type: 'apply', id },
  ])
}

export function denials({ pending }: Refusals): RunEvent[] {
  return pending.map(({ call, judgement, by, reason, changed }) =>
    changed === undefined
      ? { type: 'deny', id: call.id, call, judgement, by, reason }
      : { type: 'drop', id: call.id, call, judgement, by, reason, ...changed },
  )
}
