/** Collects problems of a rule with their position, so that a person sees all of them at once. */

import { didYouMean, quote } from '../../kit/text.ts'

export type ProblemReport = {
  /** Reports a problem: `rules/net.json: when["input.url"]: …` */
  say(message: string): undefined
  /** Returns a report for a position one step deeper in the same file. */
  at(step: string | number): ProblemReport
}

export function createReport(problems: string[], place: string): ProblemReport {
  return {
    say(message) {
      problems.push(`${place}: ${message}`)
      return undefined
    },
    at: (step) =>
      createReport(
        problems,
        `${place}${typeof step === 'number' ? `[${step}]` : /^\w+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`}`,
      ),
  }
}

/** Reports every unknown key with the most similar known key. @returns whether all keys are known. */
export function knownKeys(value: { readonly [key: string]: unknown }, known: readonly string[], report: ProblemReport): boolean {
  const unknown = Object.keys(value).filter((key) => !known.includes(key))
  for (const key of unknown) report.say(`unknown key ${quote(key)}; allowed: ${known.join(', ')}${didYouMean(key, known)}`)
  return unknown.length === 0
}
