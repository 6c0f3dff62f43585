/** Decides what is recorded of a call that a crash interrupted, from what the journal has of it and what became of its changes. */

import { applied, notApplied } from '../../../runtime/attempt/change-outcome.ts'
import type { ExternalEvent, InternalEvent, ToolOutcome } from '../../../runtime/event.ts'
import { type Entry, externalOf } from '../../../runtime/replay/external-entry.ts'

/** What became of the changes of a call: they are in the workspace, they are gone, or they still wait for a person. */
export type Fate = 'applied' | 'dropped' | 'pending'

/** With `drop` the call had ended and its changes were undecided. */
export type InterruptedCall = { readonly outcome: ToolOutcome; readonly drop?: Extract<InternalEvent, { type: 'drop' }> }

type Changed = Extract<ExternalEvent, { type: 'tool.changed' }>

export const outcomeUnknown = 'interrupted: outcome unknown'

const unknown: ToolOutcome = { status: 'failed', output: '', error: outcomeUnknown }
const tooSoon = 'interrupted: the process ended before the changes were applied'
const noAnswer = 'interrupted: the process ended before the changes were decided'

/** @param entries the journal of the run; empty when it was cleared */
export function interruptedCall(entries: readonly Entry[], callId: string, fate: Fate | undefined): InterruptedCall {
  const changed = entries.flatMap((entry) => changedIn(entry, callId)).at(-1)
  if (changed === undefined) return { outcome: unknown }
  const isBegun = entries.some(({ kind, type, body }) => kind === 'intent' && type === 'apply' && isOf(body, callId))
  return isBegun ? { outcome: whileApplied(changed, fate) } : undecided(changed, fate)
}

function changedIn(entry: Entry, callId: string): Changed[] {
  const event = entry.type === 'tool.changed' ? externalOf(entry) : undefined
  return event?.type === 'tool.changed' && event.id === callId ? [event] : []
}

function isOf(body: unknown, callId: string): boolean {
  return typeof body === 'object' && body !== null && 'id' in body && body.id === callId
}

function whileApplied({ outcome, review }: Changed, fate: Fate | undefined): ToolOutcome {
  if (fate === 'applied') return applied(outcome, review)
  return fate === undefined ? unknown : { ...notApplied(outcome, 'failed', ''), error: tooSoon }
}

function undecided({ id, call, judgement, outcome, review }: Changed, fate: Fate | undefined): InterruptedCall {
  const [by, changes] = fate === 'pending' ? ['approval.nobody', 'pending'] : ['interrupted', 'dropped']
  const drop = { type: 'drop', id, call, judgement, review, outcome, by, reason: noAnswer } as const
  return { drop, outcome: { ...outcome, status: 'denied', error: noAnswer, metadata: { ...outcome.metadata, changes } } }
}
