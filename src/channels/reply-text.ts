/** What a channel is told of a run: the answer, or in honest words why there is none. */

import type { Ending } from '../runtime/event.ts'
import { endingNote, isSilence, rememberedOf } from '../runtime/remembered.ts'

/** The two of the original: for a brain that did not answer in time, and for one that failed. */
export const apologies = { timeout: "I'm temporarily unavailable.", provider: 'Temporarily unavailable' } as const

export type Reply = {
  readonly text: string
  /** What belongs into the history; absent when the message was not answered. An apology is no answer. */
  readonly remembered?: string
}

export type RunReport = {
  readonly ending: Ending
  /** The last text of the model, if there was one. */
  readonly result?: string
  /** Questions that stay open: whoever sits at the machine can still answer them. */
  readonly open: readonly string[]
}

/** A refusal is always named beside the model's own words: "done" must not stand alone over what was denied. */
export function replyOf({ ending, result = '', open }: RunReport): Reply {
  const said = result.trim()
  if (ending.code === 'answered') return said === '' ? { text: '(no answer)' } : { text: said, remembered: said }
  if (isSilence(ending)) return { text: ending.code === 'timeout' ? apologies.timeout : apologies.provider }
  const note = `[${endingNote(ending)}${howToGoOn(ending, open)}]`
  return said === '' ? { text: note } : { text: `${said}\n\n${note}`, ...kept(ending, said) }
}

function kept(ending: Ending, said: string): Pick<Reply, 'remembered'> {
  const remembered = rememberedOf(ending, said)
  return remembered === undefined ? {} : { remembered }
}

/** For people: a model that reads how a yes is given would be tempted to give it, so the history does not have it. */
function howToGoOn({ code }: Ending, open: readonly string[]): string {
  if (code !== 'approval_needed' || open.length === 0) return ''
  return `. On the machine: ${open.map((id) => `braidclaw approvals allow ${id}`).join('; ')}; then ask again`
}
