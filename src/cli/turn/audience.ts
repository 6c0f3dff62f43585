/** Whom a turn is taken before: a person at the terminal, who can be asked, or nobody, where a log is all that hears of it. */

import { type AskLine, createAskLine } from '../../channels/ask.ts'
import { openTerminal } from '../../channels/tty.ts'
import type { Turn } from '../../channels/turn.ts'
import type { Animal, CliContext, Setup } from '../world.ts'

type Audience = Omit<Turn, 'prompt' | 'render' | 'signal'>

/** The person at the terminal, wherever stdin and stdout go; undefined when there is none. */
export function personHere({ status }: Pick<CliContext, 'status'>): AskLine | undefined {
  const terminal = openTerminal()
  return terminal === undefined ? undefined : createAskLine(terminal, status)
}

/** What is said goes to stderr. When nobody reads stdout any more the turn is over. */
export function atTerminal({ context }: Setup, animal: Animal, ask?: AskLine): Audience {
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

/** Whoever asked sits behind a wire: a question could reach nobody. */
export function behindWire({ log }: Setup, animal: Animal): Audience {
  return { ...standing(animal), tell: (line) => log('info', line), gone: () => false }
}

function standing({ agent, allowAlways, isStanding }: Animal): Pick<Audience, 'agent' | 'always' | 'isStanding'> {
  return { agent, always: allowAlways, isStanding }
}

/** The questions of the latest run that an operator can still answer, by their ids. */
export function unanswered({ agent, memory }: Animal): readonly string[] {
  const open = memory.approvals.list({ state: 'open' })
  return open.filter(({ runId }) => runId === agent.runId()).map(({ id }) => id)
}
