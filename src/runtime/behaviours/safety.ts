/** Blocks every call and every change set that the gate denies, and requests the refusal under the rule's name. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from './refusals.ts'

export const safety: BThread<Refusals, RunEvent> = {
  name: 'safety',
  priority: 10,
  init: noRefusals,
  bid: (refusals) => ({
    wait: [
      { type: 'propose', match: isForbidden },
      { type: 'tool.changed', match: isForbidden },
    ],
    block: blockedEffects(refusals),
    request: denials(refusals),
  }),
  next(refusals, event) {
    if (event.type === 'deny' || event.type === 'drop') return denied(refusals, event.id)
    if (event.type !== 'propose' && event.type !== 'tool.changed') return refusals
    const { call, judgement } = event
    if (event.type === 'propose') return refuse(refusals, { call, judgement, by: judgement.rule, reason: judgement.reason })
    const { outcome, review } = event
    return refuse(refusals, { call, judgement, by: review.rule, reason: review.reason, changed: { outcome, review } })
  },
}

function isForbidden(event: RunEvent): boolean {
  if (event.type === 'tool.changed') return event.review.verdict === 'deny'
  return event.type === 'propose' && event.judgement.verdict === 'deny'
}
