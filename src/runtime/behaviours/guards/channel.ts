/** Refuses what the profile of a channel does not permit, whatever the gate says of it: a second lock behind the gate. */

import type { BThread } from '../../../kernel/thread.ts'
import type { RunEvent } from '../../event.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../refusals.ts'

/** `tools`: only these may run; absent: all. `readonly`: nothing that people on this channel request may change anything. */
export type ChannelCap = { readonly name: string; readonly tools?: readonly string[]; readonly readonly?: true }

export function channel(cap: ChannelCap): BThread<Refusals, RunEvent> {
  return {
    name: 'channel',
    priority: 11,
    init: noRefusals,
    bid: (refusals) => ({
      wait: [
        { type: 'propose', match: (event) => event.type === 'propose' && whyNot(cap, event) !== undefined },
        ...(cap.readonly ? [{ type: 'tool.changed' } as const] : []),
      ],
      block: blockedEffects(refusals),
      request: denials(refusals),
    }),
    next(refusals, event) {
      if (event.type === 'deny' || event.type === 'drop') return denied(refusals, event.id)
      if (event.type !== 'propose' && event.type !== 'tool.changed') return refusals
      const { call, judgement } = event
      const why = event.type === 'propose' ? whyNot(cap, event) : readOnly(cap)
      if (why === undefined) return refusals
      const changed = event.type === 'tool.changed' ? { changed: { outcome: event.outcome, review: event.review } } : {}
      return refuse(refusals, { call, judgement, ...why, ...changed })
    },
  }
}

type Why = { readonly by: string; readonly reason: string }

function whyNot(cap: ChannelCap, { call, judgement }: Extract<RunEvent, { type: 'propose' }>): Why | undefined {
  if (cap.tools?.includes(call.name) === false)
    return { by: 'channel.tools', reason: `the channel "${cap.name}" does not have the tool ${call.name}` }
  return cap.readonly && judgement.writes.length > 0 ? readOnly(cap) : undefined
}

function readOnly({ name }: ChannelCap): Why {
  return { by: 'channel.readonly', reason: `the channel "${name}" changes nothing` }
}
