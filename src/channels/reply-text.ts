/** What a channel is told of a run: the answer, or in honest words why there is none. */

import type { Ending } from '../runtime/event.ts'

/** The two of the original: for a brain that did not answer in time, and for one that failed. */
export const apologies = { timeout: "I'm temporarily unavailable.", provider: 'Temporarily unavailable' } as const

export type Told = {
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
export function replyOf({ ending, result = '', open }: RunReport): Told {
  const said = result.trim()
  if (ending.code === 'answered') return said === '' ? { text: '(no answer)' } : { text: said, remembered: said }
  if (!isOwnDeadline(ending) && (ending.code === 'timeout' || ending.code === 'provider')) return { text: apologies[ending.code] }
  const what = noteOf(ending)
  const note = `[${what}${wayOut(ending, open)}]`
  return said === '' ? { text: note } : { text: `${said}\n\n${note}`, remembered: `${said}\n\n[${what}]` }
}

function noteOf({ code, message }: Ending): string {
  const words: { readonly [code: string]: string } = {
    denied: 'denied',
    approval_needed: 'approval needed',
    limit: 'limit reached',
    timeout: 'limit reached',
    budget: 'budget spent',
    estop: 'stopped',
    cancelled: 'cancelled',
    integrity: 'the records were altered, nothing further is done',
  }
  return `${words[code] ?? 'failed'}: ${message}`
}

/** The operator's limit of a run ended it, and no silent model: who asks should hear which one. */
function isOwnDeadline({ code, message }: Ending): boolean {
  return code === 'timeout' && message.includes('limits.max_run_seconds')
}

/** For people: a model that reads how a yes is given would be tempted to give it, so the history does not have it. */
function wayOut({ code }: Ending, open: readonly string[]): string {
  if (code !== 'approval_needed' || open.length === 0) return ''
  return `. On the machine: ${open.map((id) => `braidclaw approvals allow ${id}`).join('; ')}; then ask again`
}
