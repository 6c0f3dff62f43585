/** Keeps what a thread refuses: it blocks those effects forever and requests one denial or drop for each. All refusing threads share it. */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import type { Changed, Proposal, RunEvent } from '../event.ts'

/** With `changed` it refuses the changes of a call that has run, otherwise the call itself. */
export type CallRefusal = Proposal & { readonly by: string; readonly reason: string; readonly changed?: Changed }

export type Refusals = { readonly ids: readonly string[]; readonly pending: readonly CallRefusal[] }

export const noRefusals: Refusals = { ids: [], pending: [] }

export function refuse(refusals: Refusals, refusal: CallRefusal): Refusals {
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

export type Why = { readonly by: string; readonly reason: string }
type JudgedEvent = Extract<RunEvent, { type: 'propose' | 'tool.changed' }>

export type Refuser = {
  readonly name: string
  readonly priority: number
  /** @returns why the call, or what it changed, is refused; undefined: this thread has nothing against it */
  readonly why: (event: JudgedEvent) => Why | undefined
}

/** A thread that only refuses, once for each call and once for each change set. */
export function refuser({ name, priority, why }: Refuser): BThread<Refusals, RunEvent> {
  const match = (event: RunEvent) => isJudged(event) && why(event) !== undefined
  return {
    name,
    priority,
    init: noRefusals,
    bid: (refusals) => ({
      wait: [
        { type: 'propose', match },
        { type: 'tool.changed', match },
      ],
      block: blockedEffects(refusals),
      request: denials(refusals),
    }),
    next(refusals, event) {
      if (event.type === 'deny' || event.type === 'drop') return denied(refusals, event.id)
      const reason = isJudged(event) ? why(event) : undefined
      if (!isJudged(event) || reason === undefined) return refusals
      const { call, judgement } = event
      const changed = event.type === 'tool.changed' ? { changed: { outcome: event.outcome, review: event.review } } : {}
      return refuse(refusals, { call, judgement, ...reason, ...changed })
    },
  }
}

function isJudged(event: RunEvent): event is JudgedEvent {
  return event.type === 'propose' || event.type === 'tool.changed'
}

/** Blocks every call and every change set that the gate denies, and requests the refusal under the rule's name. */
export const safety = refuser({
  name: 'safety',
  priority: 10,
  why(event) {
    const { verdict, rule, reason } = event.type === 'propose' ? event.judgement : event.review
    return verdict === 'deny' ? { by: rule, reason } : undefined
  },
})
