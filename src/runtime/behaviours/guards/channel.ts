/** Refuses what the profile of a channel does not permit, whatever the gate says of it: a second lock behind the gate. */

import type { BThread } from '../../../kernel/thread.ts'
import type { RunEvent } from '../../event.ts'
import { type Refusals, refuser, type Why } from '../refusals.ts'

/** `tools`: only these may run; absent: all. `readonly`: nothing that people on this channel request may change anything. */
export type ChannelCap = { readonly name: string; readonly tools?: readonly string[]; readonly readonly?: true }

export function channel(cap: ChannelCap): BThread<Refusals, RunEvent> {
  return refuser({
    name: 'channel',
    priority: 11,
    why: (event) => (event.type === 'propose' ? whyNot(cap, event) : cap.readonly && readOnly(cap)),
  })
}

function whyNot(cap: ChannelCap, { call, judgement }: Extract<RunEvent, { type: 'propose' }>): Why | undefined {
  if (cap.tools?.includes(call.name) === false)
    return { by: 'channel.tools', reason: `the channel "${cap.name}" does not have the tool ${call.name}` }
  return cap.readonly && judgement.writes.length > 0 ? readOnly(cap) : undefined
}

function readOnly({ name }: ChannelCap): Why {
  return { by: 'channel.readonly', reason: `the channel "${name}" changes nothing` }
}
