/** Determines who can answer questions of a command-line turn: a person at the terminal, or nobody. */

import type { Conversation } from '../../host/api.ts'
import { lazy } from '../../kit/lazy.ts'
import { type ChannelTurn, refusedBy } from '../take-turn.ts'
import type { AskPerson } from './approval-prompt.ts'
import type { CliContext } from './context.ts'
import { wantsColor } from './printer.ts'
import { openTerminal } from './tty.ts'

/** Returns a prompt on the terminal, independent of stdin and stdout; undefined when there is no terminal. */
export function terminalPrompt({ status, env }: Pick<CliContext, 'status' | 'env'>): AskPerson | undefined {
  const terminal = openTerminal()
  if (terminal === undefined) return undefined
  const prompt = lazy(async () => (await import('./approval-prompt.ts')).createAskLine(terminal, { overlay: status, env }))
  const ask: (...asked: Parameters<AskPerson>) => ReturnType<AskPerson> = async (...asked) => (await prompt.get())(...asked)
  return Object.assign(ask, { edit: async (files: readonly string[]) => (await prompt.get()).edit(files) })
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
export function atTerminal({ context, conversation, ask, signal }: Attended): Pick<ChannelTurn, 'conversation' | 'onGate' | 'isStopped'> {
  const person = ask && { conversation, ask, color: wantsColor(context.env), signal, tell: tellOnStderr(context) }
  const onGate: ChannelTurn['onGate'] = person
    ? async (...gate) => (await import('./change-question.ts')).personDecides(person)(...gate)
    : refusedBy(conversation)
  return { conversation, onGate, isStopped: context.outputClosed }
}

/** Returns a function that writes one line for the person to stderr. */
export function tellOnStderr({ process: { stderr } }: CliContext): (line: string) => void {
  return (line) => stderr.write(`${line}\n`)
}
