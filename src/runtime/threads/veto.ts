/** The shortest thread: calls that are refused, with a reason that the model reads. */

import type { Call, Judgement } from '../event.ts'
import type { Thread } from './thread.ts'

/** A call as the gate judged it. */
export type JudgedCall = { readonly id: string; readonly call: Call; readonly judgement: Judgement }

/** Refuses every call for which `when` holds. What `when` takes from around it belongs into `uses`. */
export function veto(
  name: string,
  when: (call: JudgedCall) => boolean | undefined,
  { reason = `not allowed by ${name}`, uses = [] }: { readonly reason?: string; readonly uses?: readonly unknown[] } = {},
): Thread<null> {
  return {
    name,
    init: null,
    bid: () => ({ block: [{ type: 'act', match: when, reason }] }),
    next: (state) => state,
    uses: [when, reason, ...uses],
  }
}
