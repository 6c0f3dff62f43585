/** Assembles the message of a turn: the words of the command line, then the text from stdin. */

import type { CliContext } from '../../channels/terminal/context.ts'
import { stdinKind } from '../../channels/terminal/tty.ts'
import { usageError } from '../exit.ts'

export type MessageSource = {
  readonly message?: string
  /** Tells the user what to do when there is no text at all. */
  readonly advice: string
}

/** @returns undefined when there are no words and stdin is a terminal. @throws CliExit 2 when there is no text to answer */
export async function messageOf({ message, advice }: MessageSource, { process: { stderr } }: CliContext): Promise<string | undefined> {
  const kind = stdinKind()
  if (message === undefined && kind === 'terminal') return undefined
  const options = { patient: message === undefined, tell: (line: string) => stderr.write(`${line}\n`) }
  const piped = kind === 'data' ? await (await import('../../channels/terminal/input-stream.ts')).readStdin(options) : ''
  const whole = [message ?? '', piped.trimEnd()].filter((text) => text.trim() !== '').join('\n\n')
  if (whole !== '') return whole
  throw usageError(`nothing to answer: ${advice}`)
}
