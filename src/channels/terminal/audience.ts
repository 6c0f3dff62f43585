/** Whom a turn is taken before: a person at the terminal, who can be asked, or nobody, where a log is all that hears of it. */

import type { Animal } from '../../host/api.ts'
import type { AskLine } from '../../runtime/port.ts'
import { type Audience, standing } from '../take-turn.ts'
import { createAskLine } from './approval-prompt.ts'
import type { CliContext, CliSetup } from './context.ts'
import { openTerminal } from './tty.ts'

/** The person at the terminal, wherever stdin and stdout go; undefined when there is none. */
export function personHere({ status }: Pick<CliContext, 'status'>): AskLine | undefined {
  const terminal = openTerminal()
  return terminal === undefined ? undefined : createAskLine(terminal, status)
}

/** What is said goes to stderr. When nobody reads stdout any more the turn is over. */
export function atTerminal({ context }: CliSetup, animal: Animal, ask?: AskLine): Audience {
  return {
    ...standing(animal),
    ...(ask ? { ask } : {}),
    tell: tellOn(context),
    gone: context.outputClosed,
  }
}

/** One line for the person, on stderr. */
export function tellOn({ process: { stderr } }: CliContext): (line: string) => void {
  return (line) => stderr.write(`${line}\n`)
}
