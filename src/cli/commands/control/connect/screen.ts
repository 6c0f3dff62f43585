/** Prints what a command of the control plane found: JSON for programs, lines as wide as the terminal for people. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { columnsOfStderr, isTerminal } from '../../../../channels/terminal/tty.ts'

/** Undefined where stdout is not a terminal: nothing may be cut there. */
export function terminalWidth(): number | undefined {
  return isTerminal(1) ? Math.max(40, columnsOfStderr()) : undefined
}

type Shown = { readonly json: boolean; readonly value: unknown; readonly text: string }

/** `text` has its newlines. */
export function show({ process: { stdout } }: CliContext, { json, value, text }: Shown): void {
  stdout.write(json ? `${JSON.stringify(value)}\n` : text)
}

/** What a script wants goes to stdout, the sentence about it to stderr. */
export function showId({ process: { stdout, stderr } }: CliContext, shown: Shown & { readonly id: string }): void {
  if (shown.json) return void stdout.write(`${JSON.stringify(shown.value)}\n`)
  stdout.write(`${shown.id}\n`)
  stderr.write(shown.text)
}
