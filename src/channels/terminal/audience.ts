/** Determines who can answer questions of a command-line turn: a person at the terminal, or nobody. */

import type { Conversation } from '../../host/api.ts'
import { refusedBy, type Turn } from '../take-turn.ts'
import type { CliContext } from './context.ts'
import { type AskPerson, createAskLine } from './questions/approval-prompt.ts'
import { personDecides } from './questions/ask-person.ts'
import { wantsColor } from './questions/coloured.ts'
import { openTerminal } from './tty.ts'

/** Returns a prompt on the terminal, independent of stdin and stdout; undefined when there is no terminal. */
export function terminalPrompt({ status, env }: Pick<CliContext, 'status' | 'env'>): AskPerson | undefined {
  const terminal = openTerminal()
  return terminal === undefined ? undefined : createAskLine(terminal, { overlay: status, env })
}

export type Attended = {
  readonly context: CliContext
  readonly conversation: Conversation
  /** Absent when nobody can answer: every approval question is then refused with that reason. */
  readonly ask?: AskPerson | undefined
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** Messages go to stderr. The turn ends when nobody reads stdout any more. */
export function atTerminal({ context, conversation, ask, signal }: Attended): Pick<Turn, 'conversation' | 'onGate' | 'gone'> {
  const onGate = ask
    ? personDecides({ conversation, ask, color: wantsColor(context.env), signal, tell: tellOnStderr(context) })
    : refusedBy(conversation)
  return { conversation, onGate, gone: context.outputClosed }
}

/** Returns a function that writes one line for the person to stderr. */
export function tellOnStderr({ process: { stderr } }: CliContext): (line: string) => void {
  return (line) => stderr.write(`${line}\n`)
}
