/** What a channel is told of a run: the answer, or in honest words why there is none. */

import type { Ending } from '../../runtime/event.ts'

/** Seed 000's two: for a brain that did not answer in time, and for one that failed. */
export const apologies = { timeout: "I'm temporarily unavailable.", provider: 'Temporarily unavailable' } as const

export type Told = {
  readonly text: string
  /** It answers the message: it belongs into the history. An apology does not. */
  readonly isAnswer: boolean
}

export type RunReport = {
  readonly ending: Ending
  /** The last text of the model, if there was one. */
  readonly result?: string
  /** Questions that stay open: whoever sits at the machine can still answer them. */
  readonly open: readonly string[]
}

/** A refusal is always named beside the model's own words: "done" must not stand alone over what was denied. */
export function replyOf({ ending, result = '', open }: RunReport): Told {
  const said = result.trim()
  if (ending.code === 'answered') return said === '' ? { text: '(no answer)', isAnswer: false } : { text: said, isAnswer: true }
  if (ending.code === 'timeout' || ending.code === 'provider') return { text: apologies[ending.code], isAnswer: false }
  const note = noteOf(ending, open)
  return said === '' ? { text: note, isAnswer: false } : { text: `${said}\n\n${note}`, isAnswer: true }
}

function noteOf({ code, message }: Ending, open: readonly string[]): string {
  if (code === 'approval_needed' && open.length > 0)
    return `[approval needed: ${message}. On the machine: ${open.map((id) => `braidclaw approvals allow ${id}`).join('; ')}; then ask again]`
  const words: { readonly [code: string]: string } = {
    denied: 'denied',
    approval_needed: 'approval needed',
    limit: 'limit reached',
    budget: 'budget spent',
    estop: 'stopped',
    cancelled: 'cancelled',
    integrity: 'the records were altered, nothing further is done',
  }
  return `[${words[code] ?? 'failed'}: ${message}]`
}
