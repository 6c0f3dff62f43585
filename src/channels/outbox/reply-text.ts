/** Formats the reply of a channel to a message: the answer, or a plain reason why there is none. */

import type { Ending } from '../../runtime/event.ts'
import { endingNote, isUnanswered, rememberedOf } from '../../runtime/history-text.ts'

/** The two texts of the original program: for a brain that did not answer in time, and for one that failed. */
export const apologies = { timeout: "I'm temporarily unavailable.", provider: 'Temporarily unavailable' } as const

export type Reply = {
  readonly text: string
  /** The text for the history; absent when the message was not answered. An apology is not an answer. */
  readonly remembered?: string
}

export type RunReport = {
  readonly ending: Ending
  /** The last text of the model, if there was one. */
  readonly result?: string
  /** Questions that remain open: an operator at the machine can still answer them. */
  readonly open: readonly string[]
}

/** Always names a refusal beside the model's own text: "done" must not stand alone when a call was denied. */
export function replyOf({ ending, result = '', open }: RunReport): Reply {
  const said = result.trim()
  const isAnswered = ending.code === 'answered'
  if (isAnswered && open.length === 0) return said === '' ? { text: '(no answer)' } : { text: said, remembered: said }
  if (isUnanswered(ending)) return { text: ending.code === 'timeout' ? apologies.timeout : apologies.provider }
  const note = `[${isAnswered ? 'approval needed' : endingNote(ending)}${howToGoOn(open)}]`
  return said === '' ? { text: note } : { text: `${said}\n\n${note}`, ...kept(ending, said) }
}

function kept(ending: Ending, said: string): Pick<Reply, 'remembered'> {
  const remembered = rememberedOf(ending, said)
  return remembered === undefined ? {} : { remembered }
}

/** Shows people how to approve. The history omits it, because a model that reads it would be tempted to approve by itself. */
function howToGoOn(open: readonly string[]): string {
  if (open.length === 0) return ''
  return `. On the machine: ${open.map((id) => `braidclaw approvals allow ${id}`).join('; ')}; then ask again`
}
