/** Runs one turn for a follower: it shows events as they arrive, and passes questions to whoever can answer. */

import type { Conversation } from '../host/api.ts'
import type { AgentEvent, Ending, Proposal } from '../runtime/event.ts'

export type Turn = {
  readonly conversation: Conversation
  readonly prompt: string
  readonly show: (event: AgentEvent) => void
  /** Gets an open question answered, now or later. */
  readonly onGate: (gateId: string, proposal: Proposal) => Promise<void>
  /** Checked after each event: true ends the turn (the reader of our output has gone away). */
  readonly gone?: () => boolean
}

const nobody = 'nobody is here to approve it; run it in a terminal'
const usually = `${nobody}, pass --approve-all-medium, or raise security.autonomy`

/** What would let the call run, by the rule that asks; for other rules a higher level would. */
const advice: { readonly [rule: string]: string } = {
  'autonomy.network_asks': `${nobody}, or list the host in security.allowed_domains`,
  'autonomy.direct_asks': `${nobody}, or send the command without "direct"`,
  'egress.rule_of_two': nobody,
}

export async function takeTurn({ conversation, prompt, show, onGate, gone = () => false }: Turn): Promise<Ending> {
  for await (const event of conversation.run(prompt)) {
    show(event)
    const proposal = event.type === 'approval_gate' ? conversation.gate(event.gateId) : undefined
    if (event.type === 'approval_gate' && proposal) {
      if (conversation.isStanding(proposal)) await conversation.approve(event.gateId, { allow: true, by: 'terminal (always)' })
      else await onGate(event.gateId, proposal)
    }
    if (gone()) break
  }
  return conversation.ending() ?? { stop: 'error', code: 'error', message: 'the run ended without an ending' }
}

/** Refuses the call when nobody can be asked; an operator elsewhere can still answer the open question. */
export function refusedBy({ approve }: Conversation): Turn['onGate'] {
  return async (gateId, { judgement: { rule, reason } }) => {
    const known = advice[rule]
    await approve(gateId, { allow: false, by: 'nobody', note: known === undefined ? usually : `${reason}; ${known}` })
  }
}
