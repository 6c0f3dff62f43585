/** Runs one turn for a follower: it shows events as they arrive, and passes questions to people who can answer. */

import type { Conversation, TurnStart } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import type { AgentEvent, Continued, Ending, Proposal } from '../runtime/event.ts'
import { picturesIn } from '../runtime/outcome.ts'
import type { AskLine, Picture } from '../runtime/port.ts'

export type OwnCalls = Required<Pick<TurnStart, 'calls'>> & Pick<TurnStart, 'asksNoModel'>

export type ChannelTurn = {
  readonly conversation: Conversation
  readonly prompt: string
  readonly pictures?: readonly Picture[] | undefined
  /** The interrupted turn to continue; see `continueTurn`. */
  readonly continues?: Continued | undefined
  /** Only for the words of the operator: files and commands that a message of somebody else names are never read or run. */
  readonly own?: OwnCalls | undefined
  readonly show: (event: AgentEvent) => void
  /** Gets an open question answered, now or later. */
  readonly onGate: (gateId: string, proposal: Proposal) => Promise<void>
  /** Checked after each event: true ends the turn (the reader of our output has disconnected). */
  readonly isStopped?: () => boolean
}

const nobody = 'nobody is here to approve it; ask where somebody can answer (a terminal, the dashboard, a chat with approvers)'
const usually = `${nobody}, pass --approve-all-medium, or raise security.autonomy`

/** Says what would let the call run, by the rule that asks; for other rules a higher level would. */
const advice: { readonly [rule: string]: string } = {
  'autonomy.network_asks': `${nobody}, or list the host in security.allowed_domains`,
  'autonomy.direct_asks': `${nobody}, or send the command without "direct"`,
  'egress.rule_of_two': nobody,
}

/** A prompt such as `/deploy now` begins the turn of that command. @throws FailureError `usage` for a misspelled one */
export async function takeTurn(given: ChannelTurn): Promise<Ending> {
  const { conversation, prompt, pictures, continues, own, show, onGate, isStopped = () => false } = given
  const asked = continues || !prompt.startsWith('/') ? undefined : (await conversation.commands())?.turnOf(prompt)
  const message = { text: asked?.prompt ?? prompt, ...picturesIn({ pictures }) }
  const start = { ...own, allowedTools: asked?.allowedTools }
  for await (const event of conversation.run(message, undefined, continues, start)) {
    show(event)
    const proposal = event.type === 'approval_gate' ? conversation.gate(event.gateId) : undefined
    if (event.type === 'approval_gate' && proposal) {
      if (conversation.isStanding(proposal)) await conversation.approve(event.gateId, { allow: true, by: 'terminal (always)' })
      else await onGate(event.gateId, proposal)
    }
    if (isStopped()) break
  }
  return conversation.ending() ?? { stop: 'error', code: 'error', message: 'the run ended without an ending' }
}

const outcomes: { readonly [letter: string]: 'done' | 'again' | 'skip' } = { d: 'done', r: 'again', s: 'skip' }

/**
 * Prepares to continue the last turn, and asks a person about each call that may have happened. @throws FailureError `usage` when it cannot
 * continue
 */
export async function continueTurn({ interrupted }: Conversation, ask?: AskLine): Promise<Pick<ChannelTurn, 'prompt' | 'continues'>> {
  const turn = await interrupted()
  if (typeof turn === 'string') throw new FailureError('usage', `nothing to continue: ${turn}`)
  const answers = new Map<string, 'done' | 'again' | 'skip'>()
  for (const { call, judgement } of ask ? turn.unknown : []) {
    const line = await ask?.(
      `The turn was interrupted while this ran:\n  ${judgement.summary}\nWas it done? [d]one / [r]un again / [s]kip, else the model checks: `,
    )
    const answer = outcomes[line?.trim().toLowerCase()[0] ?? '']
    if (answer !== undefined) answers.set(call.id, answer)
  }
  return turn.continueWith(answers)
}

/** Refuses the call when nobody can be asked; an operator elsewhere can still answer the open question. */
export function refusedBy({ approve }: Pick<Conversation, 'approve'>): ChannelTurn['onGate'] {
  return async (gateId, { judgement: { rule, reason } }) => {
    const known = advice[rule]
    await approve(gateId, { allow: false, by: 'nobody', note: known === undefined ? usually : `${reason}; ${known}` })
  }
}
