/** Builds a thread that refuses calls with a reason that the model reads. */

import type { Call, Judgement } from '../event.ts'
import type { Thread } from './thread.ts'

/** A call with the gate's judgement. */
export type JudgedCall = { readonly id: string; readonly call: Call; readonly judgement: Judgement }

/** Refuses every call for which `when` returns true. List the values that `when` takes from its scope in `uses`. */
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
