/** Builds the history entry of a run: the model's answer, with a note about what was refused or stopped. */

import type { Ending } from './event.ts'

/** @param result the model's last text, if any. @returns undefined when the model did not answer: an apology is not an answer */
export function rememberedOf(ending: Ending, result = ''): string | undefined {
  const answer = result.trim()
  if (answer === '' || isUnanswered(ending)) return undefined
  return ending.code === 'answered' ? answer : `${answer}\n\n[${endingNote(ending)}]`
}

/**
 * Tells whether the model gave no answer in time. The operator's own run limit does not count as silence: the sender should learn about it.
 */
export function isUnanswered({ code, message }: Ending): boolean {
  return code === 'provider' || (code === 'timeout' && !message.includes('limits.max_run_seconds'))
}

export function endingNote({ code, message }: Ending): string {
  const words: { readonly [code: string]: string } = {
    denied: 'denied',
    approval_needed: 'approval needed',
    limit: 'limit reached',
    timeout: 'limit reached',
    budget: 'budget spent',
    checks_failed: 'checks failed',
    estop: 'stopped',
    cancelled: 'cancelled',
    integrity: 'the records were altered, nothing further is done',
  }
  return `${words[code] ?? 'failed'}: ${message}`
}
