/** Asks the person at the terminal about a call or about its changes, and withdraws the question when it was decided elsewhere first. */

import type { Conversation } from '../../../host/api.ts'
import type { Proposal } from '../../../runtime/event.ts'
import type { Turn } from '../../take-turn.ts'
import { type AskPerson, approvalQuestion, questionHeading, readAnswer } from './approval-prompt.ts'
import type { ChangeAnswer } from './change-question.ts'

export type Person = {
  readonly conversation: Conversation
  readonly ask: AskPerson
  readonly color: boolean
  readonly tell: (line: string) => void
  /** Aborted by Ctrl-C, which withdraws an open question. */
  readonly signal: AbortSignal
}

export function personDecides(person: Person): Turn['onGate'] {
  const { conversation, signal, tell } = person
  const decide: Turn['onGate'] = async (gateId, proposal) => {
    const answer = await putTo(person, gateId, proposal)
    if (answer === undefined && !conversation.gate(gateId)) {
      if (!signal.aborted) tell('the question is closed: it was answered elsewhere, or its time is over')
      return
    }
    const { kind, note, revision } = answer ?? { kind: 'no' }
    const allow = kind === 'yes' || kind === 'always'
    const revised = allow && revision ? await (await conversation.changesOf(gateId))?.revise?.(revision) : undefined
    if (revised?.ok === false) {
      tell(`that part cannot be applied: ${revised.message}`)
      return await decide(gateId, proposal)
    }
    const decision = { allow, by: 'terminal', ...(note ? { note } : {}), ...(revised?.ok ? { part: revised.part } : {}) }
    const rejected = await conversation.approve(gateId, decision)
    if (signal.aborted) return
    if (rejected !== undefined) tell('too late: the question is no longer open, nothing was allowed')
    else if (kind === 'always') tell(conversation.allowAlways(proposal) ?? 'this call cannot be allowed for good; allowed once')
  }
  return decide
}

/** Withdraws the question when it closes: it was answered elsewhere, it expired, or the run ended (estop, a limit). */
async function putTo(person: Person, gateId: string, { call, judgement }: Proposal): Promise<ChangeAnswer | undefined> {
  const { conversation, ask, color } = person
  const closed = new AbortController()
  void conversation.gateClosed(gateId).then(() => closed.abort())
  const signal = AbortSignal.any([person.signal, closed.signal])
  const asked = { tool: call.name, judgement, args: JSON.stringify(call.input) }
  const set = await conversation.changesOf(gateId)
  if (set) {
    const { askAboutChanges } = await import('./change-question.ts')
    return await askAboutChanges({ heading: questionHeading(asked, 300), set, ask, color, signal })
  }
  const line = await ask(approvalQuestion(asked), signal)
  return line === undefined ? undefined : readAnswer(line)
}
