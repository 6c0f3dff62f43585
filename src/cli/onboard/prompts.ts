/** Asks questions in the terminal, each of which ends in an answer or in `Cancelled`; all output goes through the printer. */

import { autocomplete, cancel, intro, log, outro, password, select, text } from '@clack/prompts'
import { editorStream } from '../../channels/terminal/editor-stream.ts'
import type { Printer } from '../../channels/terminal/printer.ts'
import { escapeHidden as safe } from '../../kit/escape.ts'

/** The user pressed Ctrl-C or Escape: nothing may be changed. */
export class Cancelled extends Error {}

export type Choice<T> = { readonly value: T; readonly label: string; readonly hint?: string }

export type Prompts = ReturnType<typeof createPrompts>

/** The stream passes the colours and cursor movements of the questions, so every text in them is escaped first. */
export function createPrompts(printer: Pick<Printer, 'editor'>) {
  const output = editorStream(printer)

  async function choose<T extends string>(message: string, options: readonly Choice<T>[], first?: T): Promise<T> {
    const shown = options.map(({ value, label, hint }) => ({
      value: String(value),
      label: safe(label),
      ...(hint ? { hint: safe(hint) } : {}),
    }))
    const picked = answered(
      await select<string>({ message: safe(message), options: shown, output, ...(first ? { initialValue: String(first) } : {}) }),
    )
    const found = options.find(({ value }) => value === picked)
    if (found === undefined) throw new Cancelled()
    return found.value
  }

  return {
    choose,
    /** Lets the user pick one of many names by typing a part of it. */
    pick: async (message: string, names: readonly string[]): Promise<string> =>
      answered(
        await autocomplete<string>({
          message: safe(message),
          maxItems: 8,
          output,
          options: names.map((value) => ({ value, label: safe(value) })),
        }),
      ),
    /** `wrong` returns a sentence for an invalid answer. */
    write: async (message: string, wrong: (answer: string) => string | undefined, initialValue = ''): Promise<string> =>
      answered(await text({ message: safe(message), initialValue, output, validate: (answer = '') => wrong(answer.trim()) })).trim(),
    /** Does not show the typed text. */
    writeHidden: async (message: string, wrong: (answer: string) => string | undefined): Promise<string> =>
      answered(await password({ message: safe(message), output, validate: (answer = '') => wrong(answer.trim()) })).trim(),
    begin: (title: string) => intro(safe(title), { output }),
    end: (message: string) => outro(safe(message), { output }),
    cancel: (message: string) => cancel(safe(message), { output }),
    say: (how: 'step' | 'success' | 'error' | 'warn' | 'info', message: string) => log[how](safe(message), { output }),
  }
}

function answered(answer: string | symbol): string {
  if (typeof answer === 'symbol') throw new Cancelled()
  return answer
}
