/** Asks the person at the terminal about a call, and withdraws the question when it was decided elsewhere first. */

import type { Conversation } from '../../host/api.ts'
import type { Proposal } from '../../runtime/event.ts'
import type { AskLine } from '../../runtime/port.ts'
import type { Turn } from '../take-turn.ts'
import { approvalQuestion, readAnswer } from './approval-prompt.ts'

export type Person = {
  readonly conversation: Conversation
  readonly ask: AskLine
  readonly tell: (line: string) => void
  /** Aborted by Ctrl-C, which withdraws an open question. */
  readonly signal: AbortSignal
}

export function personDecides(person: Person): Turn['onGate'] {
  const { conversation, signal, tell } = person
  return async (gateId, proposal) => {
    const line = await putTo(person, gateId, proposal)
    if (line === undefined && !conversation.gate(gateId)) {
      if (!signal.aborted) tell('the question is closed: it was answered elsewhere, or its time is over')
      return
    }
    const answer = readAnswer(line)
    const rejected = await conversation.approve(gateId, { allow: answer !== 'no', by: 'terminal' })
    if (signal.aborted) return
    if (rejected !== undefined) tell('too late: the question is no longer open, nothing was allowed')
    else if (answer === 'always') tell(conversation.allowAlways(proposal) ?? 'this call cannot be allowed for good; allowed once')
  }
}

/** Withdraws the question when it closes: it was answered elsewhere, it expired, or the run ended (estop, a limit). */
async function putTo({ conversation, ask, signal }: Person, gateId: string, { call, judgement }: Proposal): Promise<string | undefined> {
  const closed = new AbortController()
  void conversation.gateClosed(gateId).then(() => closed.abort())
  const question = approvalQuestion({ tool: call.name, judgement, args: JSON.stringify(call.input) })
  return await ask(question, AbortSignal.any([signal, closed.signal]))
}
