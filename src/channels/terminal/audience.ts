/** Determines who can answer questions of a command-line turn: a person at the terminal, or nobody. */

import type { Conversation } from '../../host/api.ts'
import type { Proposal } from '../../runtime/event.ts'
import { type ChannelTurn, refusedBy } from '../take-turn.ts'
import { type AskPerson, approvalQuestion, createAskLine, questionHeading, readAnswer } from './approval-prompt.ts'
import type { ChangeAnswer } from './change-question.ts'
import type { CliContext } from './context.ts'
import { wantsColor } from './printer.ts'
import { openTerminal } from './tty.ts'

/** Returns a prompt on the terminal, independent of stdin and stdout; undefined when there is no terminal. */
export function terminalPrompt({ status, env }: Pick<CliContext, 'status' | 'env'>): AskPerson | undefined {
  const terminal = openTerminal()
  return terminal === undefined ? undefined : createAskLine(terminal, { overlay: status, env })
}

export type Attended = {
  readonly context: CliContext
  readonly conversation: Conversation
  /** Absent when nobody can answer: every approval question is then refused with that reason. */
  readonly ask?: AskPerson | undefined
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** Messages go to stderr. The turn ends when nobody reads stdout any more. */
export function atTerminal({ context, conversation, ask, signal }: Attended): Pick<ChannelTurn, 'conversation' | 'onGate' | 'isStopped'> {
  const onGate = ask
    ? personDecides({ conversation, ask, color: wantsColor(context.env), signal, tell: tellOnStderr(context) })
    : refusedBy(conversation)
  return { conversation, onGate, isStopped: context.outputClosed }
}

/** Returns a function that writes one line for the person to stderr. */
export function tellOnStderr({ process: { stderr } }: CliContext): (line: string) => void {
  return (line) => stderr.write(`${line}\n`)
}

type Person = {
  readonly conversation: Conversation
  readonly ask: AskPerson
  readonly color: boolean
  readonly tell: (line: string) => void
  /** Aborted by Ctrl-C, which withdraws an open question. */
  readonly signal: AbortSignal
}

/** Asks the person at the terminal about a call or about its changes, and withdraws the question when it was decided elsewhere first. */
function personDecides(person: Person): ChannelTurn['onGate'] {
  const { conversation, signal, tell } = person
  const decide: ChannelTurn['onGate'] = async (gateId, proposal) => {
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
