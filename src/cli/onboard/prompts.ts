/** Questions in the terminal, each of which ends in an answer or in `Cancelled`. */

import { autocomplete, password, select, text } from '@clack/prompts'

/** Ctrl-C or Escape: nothing shall be changed. */
export class Cancelled extends Error {}

export type Choice<T> = { readonly value: T; readonly label: string; readonly hint?: string }

export async function choose<T extends string>(message: string, options: readonly Choice<T>[], first?: T): Promise<T> {
  const shown = options.map(({ value, label, hint }) => ({ value: String(value), label, ...(hint ? { hint } : {}) }))
  const picked = answered(await select<string>({ message, options: shown, ...(first ? { initialValue: String(first) } : {}) }))
  const found = options.find(({ value }) => value === picked)
  if (found === undefined) throw new Cancelled()
  return found.value
}

/** Of many names, by typing a part of one. */
export async function pick(message: string, names: readonly string[]): Promise<string> {
  return answered(await autocomplete<string>({ message, maxItems: 8, options: names.map((value) => ({ value, label: value })) }))
}

/** `wrong`: a sentence for an answer that will not do. */
export async function write(message: string, wrong: (answer: string) => string | undefined, initialValue = ''): Promise<string> {
  const said = await text({ message, initialValue, validate: (answer = '') => wrong(answer.trim()) })
  return answered(said).trim()
}

/** What is typed is not shown. */
export async function writeHidden(message: string, wrong: (answer: string) => string | undefined): Promise<string> {
  return answered(await password({ message, validate: (answer = '') => wrong(answer.trim()) })).trim()
}

function answered(answer: string | symbol): string {
  if (typeof answer === 'symbol') throw new Cancelled()
  return answer
}
