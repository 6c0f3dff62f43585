/** Blocks the act of every call that the gate denies, and requests the refusal under the rule's name. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { blockedActs, denials, denied, noRefusals, type Refusals, refuse } from './refusals.ts'

export const safety: BThread<Refusals, RunEvent> = {
  name: 'safety',
  priority: 10,
  init: noRefusals,
  bid: (refusals) => ({
    wait: [{ type: 'propose', match: isForbidden }],
    block: blockedActs(refusals),
    request: denials(refusals),
  }),
  next(refusals, event) {
    if (event.type === 'deny') return denied(refusals, event.id)
    if (event.type !== 'propose') return refusals
    const { call, judgement } = event
    return refuse(refusals, { call, judgement, by: judgement.rule, reason: judgement.reason })
  },
}

function isForbidden(event: RunEvent): boolean {
  return event.type === 'propose' && event.judgement.verdict === 'deny'
}
