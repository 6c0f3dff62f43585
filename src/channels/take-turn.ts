/** One turn with a person watching: events are shown as they come, gates are put to whoever can answer. */

import type { Animal, Setup } from '../host/api.ts'
import type { Agent } from '../runtime/create-agent.ts'
import type { Ending, Proposal } from '../runtime/event.ts'
import type { AskLine } from '../runtime/port.ts'
import { approvalQuestion, readAnswer } from './terminal/approval-prompt.ts'
import type { Render } from './terminal/render.ts'

export type Turn = {
  readonly agent: Agent
  readonly prompt: string
  readonly render: Render
  /** Absent when nobody is there: then an approval is a no that says so. */
  readonly ask?: AskLine
  /** "a" was answered: remember it. @returns what is allowed from now on, in words, or undefined when no rule can be made of it. */
  readonly always: (proposal: Proposal) => string | undefined
  /** Said "a" to earlier, in this conversation. */
  readonly isStanding: (proposal: Proposal) => boolean
  readonly tell: (line: string) => void
  /** Checked after each event: true ends the turn (the reader of our output went away). */
  readonly gone: () => boolean
  /** Aborted by Ctrl-C: takes an open question back. */
  readonly signal: AbortSignal
}

const nobody = 'nobody is here to approve it; run it in a terminal, pass --approve-all-medium, or raise security.autonomy'

export async function takeTurn(turn: Turn): Promise<Ending> {
  const { agent, prompt, render } = turn
  for await (const event of agent.run(prompt)) {
    render.show(event)
    if (event.type === 'approval_gate') await decide(turn, event.gateId)
    if (turn.gone()) break
  }
  return agent.ending() ?? { stop: 'error', code: 'error', message: 'the run ended without an ending' }
}

async function decide(turn: Turn, gateId: string): Promise<void> {
  const proposal = turn.agent.gate(gateId)
  if (!proposal) return
  if (turn.isStanding(proposal)) {
    await turn.agent.approve(gateId, { allow: true, by: 'terminal (always)' })
    return
  }
  if (!turn.ask) {
    await turn.agent.approve(gateId, { allow: false, by: 'nobody', note: nobody })
    return
  }
  const line = await putToPerson(turn, gateId, proposal)
  if (line === undefined && !turn.agent.gate(gateId)) {
    if (!turn.signal.aborted) turn.tell('the question is closed: it was answered elsewhere, or its time is over')
    return
  }
  const answer = readAnswer(line)
  const rejected = await turn.agent.approve(gateId, { allow: answer !== 'no', by: 'terminal' })
  if (turn.signal.aborted) return
  if (rejected !== undefined) turn.tell('too late: the question is no longer open, nothing was allowed')
  else if (answer === 'always') turn.tell(turn.always(proposal) ?? 'this call cannot be allowed for good; allowed once')
}

/** The question is taken back when it is no longer open: it expired, or the run ended without an answer (estop, a limit). */
async function putToPerson({ agent, ask, signal }: Turn, gateId: string, { call, judgement }: Proposal): Promise<string | undefined> {
  const closed = new AbortController()
  const look = setInterval(() => {
    if (agent.ending() || !agent.gate(gateId)) closed.abort()
  }, 200)
  const question = approvalQuestion({ tool: call.name, judgement, args: JSON.stringify(call.input) })
  try {
    return await ask?.(question, AbortSignal.any([signal, closed.signal]))
  } finally {
    clearInterval(look)
  }
}

export type Audience = Omit<Turn, 'prompt' | 'render' | 'signal'>

/** Whoever asked sits behind a wire: a question could reach nobody. */
export function behindWire({ log }: Setup, animal: Animal): Audience {
  return { ...standing(animal), tell: (line) => log('info', line), gone: () => false }
}

export function standing({ agent, allowAlways, isStanding }: Animal): Pick<Audience, 'agent' | 'always' | 'isStanding'> {
  return { agent, always: allowAlways, isStanding }
}

/** The questions of the latest run that an operator can still answer, by their ids. */
export function unanswered({ agent, memory }: Animal): readonly string[] {
  const open = memory.approvals.list({ state: 'open' })
  return open.filter(({ runId }) => runId === agent.runId()).map(({ id }) => id)
}
