/** Whom a turn is taken before at a command line: a person at the terminal, who can be asked, or nobody. */

import type { Conversation } from '../../host/api.ts'
import type { AskLine } from '../../runtime/port.ts'
import { refusedBy, type Turn } from '../take-turn.ts'
import { createAskLine } from './approval-prompt.ts'
import { personDecides } from './ask-person.ts'
import type { CliContext } from './context.ts'
import { openTerminal } from './tty.ts'

/** The person at the terminal, wherever stdin and stdout go; undefined when there is none. */
export function terminalPrompt({ status }: Pick<CliContext, 'status'>): AskLine | undefined {
  const terminal = openTerminal()
  return terminal === undefined ? undefined : createAskLine(terminal, status)
}

export type Attended = {
  readonly context: CliContext
  readonly conversation: Conversation
  /** Absent when nobody is there: then an approval is a no that says so. */
  readonly ask?: AskLine | undefined
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** What is said goes to stderr. When nobody reads stdout any more the turn is over. */
export function atTerminal({ context, conversation, ask, signal }: Attended): Pick<Turn, 'conversation' | 'onGate' | 'gone'> {
  const onGate = ask ? personDecides({ conversation, ask, signal, tell: tellOnStderr(context) }) : refusedBy(conversation)
  return { conversation, onGate, gone: context.outputClosed }
}

/** One line for the person, on stderr. */
export function tellOnStderr({ process: { stderr } }: CliContext): (line: string) => void {
  return (line) => stderr.write(`${line}\n`)
}
