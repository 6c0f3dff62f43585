/** One turn at the command line: what is shown where, who is asked, what Ctrl-C does, and the exit code. */

import type { Animal } from '../../host/api.ts'
import { isOffline } from '../../host/setup/answering-provider.ts'
import type { Ending } from '../../runtime/event.ts'
import type { AskLine } from '../../runtime/port.ts'
import { takeTurn, unanswered } from '../take-turn.ts'
import { withActivity } from './activity.ts'
import { atTerminal } from './audience.ts'
import type { CliContext, CliSetup } from './context.ts'
import { createRender, type OutputFormat, type Render, type Screen } from './render.ts'
import { onInterrupt } from './signals.ts'
import { isTerminal } from './tty.ts'
import { usageLine } from './usage-line.ts'

export type TurnOptions = {
  readonly animal: Animal
  readonly setup: CliSetup
  readonly format: OutputFormat
  readonly prompt: string
  readonly ask?: AskLine
  /** How the format is shown, when not as usual. */
  readonly renderer?: (format: OutputFormat, screen: Screen) => Render
  /** At a terminal, say what the turn used. */
  readonly sayUsage?: boolean
}

/** @returns the exit code. */
export async function turn(options: TurnOptions): Promise<number> {
  const { animal, format, prompt, ask, renderer = createRender, setup } = options
  const { context } = setup
  const screen = screenOf(context)
  const status = format === 'text' && showsStatus(context, screen) ? context.status : nowhere
  const render = withActivity(renderer(format, screen), status)
  const audience = atTerminal(setup, animal, ask && ((question, signal) => render.paused(ask(question, signal))))
  const { signal, stop } = onInterrupt((by) => animal.agent.cancel(by))
  try {
    const ending = await takeTurn({ ...audience, prompt, render, signal })
    const exitCode = context.exitCodeOf(ending.code)
    const told = withWayOut(animal, ending)
    render.end({ ending: told, exitCode, runId: animal.agent.runId() ?? '', conversationId: animal.agent.conversationId })
    if (format === 'text') explain(context, told)
    if (format === 'text' && options.sayUsage) sayUsage(setup, screen, animal)
    status.begin('summarising')
    if (exitCode === 0) await animal.makeRoom({ tell: audience.tell, signal })
    return exitCode
  } finally {
    status.end()
    stop()
  }
}

const nowhere = { begin: () => {}, end: () => {} }

/** Whoever wants plain text, or reads lines of JSON, gets no line that is drawn and taken away again. */
function showsStatus({ env }: CliContext, { color }: Screen): boolean {
  return color && !env.BRAIDCLAW_LOG?.startsWith('json')
}

function sayUsage({ config, context }: CliSetup, { color }: Screen, { agent }: Animal): void {
  const { env, process } = context
  if (!isTerminal(2) || env.TERM === 'dumb' || isOffline(config, config.defaultProvider)) return
  const line = usageLine(agent.usage())
  if (line !== undefined) process.stderr.write(color ? [{ mark: 'dim' }, line, { mark: 'normal' }, '\n'] : `${line}\n`)
}

/** Said to the person alone: a model that reads how a yes is given would be tempted to give it. */
function withWayOut(animal: Animal, ending: Ending): Ending {
  if (ending.code !== 'approval_needed') return ending
  const ways = unanswered(animal).map((id) => `braidclaw approvals allow ${id}`)
  if (ways.length === 0) return ending
  return { ...ending, message: `${ending.message}; or: ${ways.join('; ')}, then: braidclaw agent -c -m "go on"` }
}

/** One line on stderr when the answer alone would look better than it went. */
function explain({ process: { stderr }, outputClosed, outputFailure }: CliContext, { code, message }: Ending): void {
  if (code === 'denied') stderr.write(`denied: ${message}\n`)
  else if (code === 'approval_needed') stderr.write(`approval needed: ${message}\n`)
  else if (code === 'estop') stderr.write('stopped: "braidclaw estop --clear" lets tools run again\n')
  // A stdout that failed is an error of its own, said at the end.
  else if (code === 'cancelled' && outputFailure() === undefined)
    stderr.write(outputClosed() ? 'cancelled: nobody reads stdout any more\n' : 'cancelled\n')
}

function screenOf({ process: { stdout, stderr }, env }: CliContext): Screen {
  const terminal = isTerminal(1)
  return { out: stdout, err: stderr, terminal, color: isTerminal(2) && !env.NO_COLOR && env.TERM !== 'dumb' }
}
