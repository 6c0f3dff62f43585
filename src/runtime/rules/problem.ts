/** What is wrong with a rule, said where it stands; collected, so that a person sees all of it at once. */

import { didYouMean, quote } from '../../kit/text.ts'

export type Report = {
  /** `rules/net.json: when["input.url"]: …` */
  say(message: string): undefined
  /** The same file, one step deeper. */
  at(step: string | number): Report
}

export function createReport(problems: string[], place: string): Report {
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

/** Says every key that is not known, with the one that was probably meant. @returns whether all are known. */
export function knownKeys(value: { readonly [key: string]: unknown }, known: readonly string[], report: Report): boolean {
  const unknown = Object.keys(value).filter((key) => !known.includes(key))
  for (const key of unknown) report.say(`unknown key ${quote(key)}; allowed: ${known.join(', ')}${didYouMean(key, known)}`)
  return unknown.length === 0
}
