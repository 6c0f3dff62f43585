/** Limits the tool rounds of a run, where it refuses the calls of a reply beyond the limit and halts the run, and the calls in flight. */

import type { BThread } from '../../../kernel/thread.ts'
import type { RunEvent } from '../../event.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../refusals.ts'

type Limits = { readonly thinks: number; readonly refusals: Refusals; readonly halt: 'no' | 'wanted' | 'done' }

/**
 * Allows `maxToolRounds` rounds of tools and one more think to answer from them. It denies calls in that last reply, because no model call
 * would read their results. A call that a developer's thread requests counts as a round too.
 * Each iteration of a wiggum run has as many.
 */
export function limits({ maxToolRounds }: { readonly maxToolRounds: number }): BThread<Limits, RunEvent> {
  const by = 'limits.max_tool_rounds'
  const reason = `the limit of ${maxToolRounds} tool rounds is reached; raise limits.max_tool_rounds or pass --max-turns`
  return {
    name: 'limits',
    priority: 20,
    init: { thinks: 0, refusals: noRefusals, halt: 'no' },
    bid: ({ thinks, refusals, halt }) => ({
      wait: [{ type: 'think' }, { type: 'judge' }, { type: 'propose' }, { type: 'retry' }],
      block: thinks > maxToolRounds ? [{ type: 'think' }, { type: 'judge' }, ...blockedEffects(refusals)] : [],
      request: [...denials(refusals), ...(halt === 'wanted' ? [{ type: 'halt', code: 'limit', message: reason } as const] : [])],
    }),
    next(state, event) {
      if (event.type === 'think' || event.type === 'judge') return { ...state, thinks: state.thinks + 1 }
      if (event.type === 'retry') return { ...state, thinks: 0 }
      if (event.type === 'deny') return { ...state, refusals: denied(state.refusals, event.id) }
      if (event.type === 'halt') return { ...state, halt: 'done' }
      if (event.type !== 'propose' || state.thinks <= maxToolRounds) return state
      const { call, judgement } = event
      return {
        ...state,
        refusals: refuse(state.refusals, { call, judgement, by, reason }),
        halt: state.halt === 'no' ? 'wanted' : state.halt,
      }
    },
  }
}

type Flight = { readonly id: string; readonly writes: readonly string[] }
/** Limits the calls in flight to N, and makes two that write the same path run one after the other, until their changes are decided. */
export function parallel({ maxParallel }: { readonly maxParallel: number }): BThread<{ readonly inFlight: readonly Flight[] }, RunEvent> {
  return {
    name: 'parallel',
    priority: 31,
    init: { inFlight: [] },
    bid: ({ inFlight }) => ({
      wait: [{ type: 'act' }, { type: 'tool.done' }, { type: 'drop' }],
      block: inFlight.length >= maxParallel ? [{ type: 'act' }] : [{ type: 'act', match: (event) => collides(inFlight, event) }],
    }),
    next({ inFlight }, event) {
      if (event.type === 'act') return { inFlight: [...inFlight, { id: event.id, writes: event.judgement.writes }] }
      if (event.type === 'tool.done' || event.type === 'drop') return { inFlight: inFlight.filter(({ id }) => id !== event.id) }
      return { inFlight }
    },
  }
}

function collides(inFlight: readonly Flight[], event: RunEvent): boolean {
  if (event.type !== 'act') return false
  return inFlight.some(({ writes }) => writes.some((path) => event.judgement.writes.includes(path)))
}
