/** Formats what a channel is told about a run: the answer, or why there is none. */

import type { Ending } from '../../runtime/event.ts'
import { endingNote } from '../../runtime/history-text.ts'

export type Reported = {
  readonly name: string
  readonly check: string | null
  readonly ending: Ending
  readonly answer: string
  /** `passed`, why not, or null when nothing was checked. */
  readonly checked: string | null
  /** The questions that an operator can still answer. */
  readonly unanswered: readonly string[]
}

/** Always names a failure beside the model's own text: "done" must not stand alone when the run does not count as good. */
export function reportOf({ name, check, ending, answer, checked, unanswered }: Reported): string {
  const said = answer.trim()
  if (ending.code !== 'answered') {
    const todo =
      ending.code === 'approval_needed' ? unanswered.map((id) => `. On the machine: braidclaw approvals allow ${id}`).join('') : ''
    return both(said, `[schedule "${name}": ${endingNote(ending)}${todo}]`)
  }
  if (checked === null || checked === 'passed') return said === '' ? `[schedule "${name}": there was no answer]` : said
  return both(said, `[schedule "${name}": the check "${check}" did not pass: ${checked}]`)
}

export function interruptedReport(name: string, why: string): string {
  return `[schedule "${name}": interrupted: ${why}]`
}

export function pausedReport(name: string, failures: number): string {
  return `[schedule "${name}" is paused, because ${failures} runs in a row failed; to go on: braidclaw schedule resume ${name}]`
}

export function both(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}
