/** What the history of an agent keeps of a run: the answer, with what was refused or stopped named beside the model's own words. */

import type { Ending } from './event.ts'

/** @param result the last text of the model, if there was one. @returns undefined when the message was not answered: an apology is no answer */
export function rememberedOf(ending: Ending, result = ''): string | undefined {
  const said = result.trim()
  if (said === '' || isSilence(ending)) return undefined
  return ending.code === 'answered' ? said : `${said}\n\n[${endingNote(ending)}]`
}

/** The model did not answer, or not in time. The operator's own limit of a run is another matter: who asks should hear of it. */
export function isSilence({ code, message }: Ending): boolean {
  return code === 'provider' || (code === 'timeout' && !message.includes('limits.max_run_seconds'))
}

export function endingNote({ code, message }: Ending): string {
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
