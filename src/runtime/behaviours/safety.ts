/** Blocks every call and every change set that the gate denies, and requests the refusal under the rule's name. */

import { refuser } from './refusals.ts'

export const safety = refuser({
  name: 'safety',
  priority: 10,
  why(event) {
    const { verdict, rule, reason } = event.type === 'propose' ? event.judgement : event.review
    return verdict === 'deny' ? { by: rule, reason } : undefined
  },
})
