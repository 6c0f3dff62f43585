/** `agent`: a conversation in the terminal, or one turn. */

import { createAskLine } from '../../channels/ask.ts'
import { createRender, type OutputFormat, type Screen } from '../../channels/render.ts'
import { isTerminal, openTerminal, stdinKind } from '../../channels/tty.ts'
import { takeTurn } from '../../channels/turn.ts'
import { providerNamed } from '../../config/config.ts'
import { type Animal, wake } from '../../main.ts'
import type { Ending } from '../../runtime/event.ts'
import type { CliContext } from '../context.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { onInterrupt } from '../interrupt.ts'
import type { AgentFlags } from '../routes/types.ts'
import { type Setup, setUp } from '../setup.ts'
import { readStdin } from '../stdin.ts'

export async function agent(this: CliContext, flags: AgentFlags): Promise<void> {
  const { workspace, model, autonomy, maxTurns, approveAllMedium } = flags
  const setup = setUp(this, { workspace, model, autonomy, maxTurns, approveAllMedium })
  if (!setup.config.channels.cli.enabled)
    throw new CliExit(exitCodes.error, 'error: [channels.cli] enabled = false; this channel is switched off')
  const message = await messageOf(flags)
  introduce(setup)
  if (message === undefined) return converse(setup, flags)
  const { exitCode } = await oneTurn(setup, flags, message)
  if (exitCode !== 0) throw new CliExit(exitCode)
}

/** The argument, then what stdin carries. Undefined means: a person is at the terminal and wants to talk. */
async function messageOf({ message }: AgentFlags): Promise<string | undefined> {
  const kind = stdinKind()
  if (message === undefined && kind === 'terminal') return undefined
  const piped = kind === 'data' ? await readStdin({ patient: message === undefined }) : ''
  const whole = [message ?? '', piped.trimEnd()].filter((text) => text.trim() !== '').join('\n\n')
  if (whole !== '') return whole
  throw new CliExit(
    exitCodes.usage,
    'error: nothing to answer: pass -m "message", pipe text in, or run it in a terminal for a conversation',
  )
}

async function oneTurn(setup: Setup, flags: AgentFlags, prompt: string): Promise<{ exitCode: number }> {
  const terminal = openTerminal()
  const { context } = setup
  const ask = terminal === undefined ? undefined : createAskLine(terminal, context.process.stderr.write)
  const animal = await wake(setup, { channel: 'cli', ask, conversation: conversationOf(flags) })
  try {
    return { exitCode: await turn(animal, setup, formatOf(flags), prompt, ask) }
  } finally {
    animal.close()
  }
}

async function turn(
  animal: Animal,
  setup: Setup,
  format: OutputFormat,
  prompt: string,
  ask: ReturnType<typeof createAskLine> | undefined,
): Promise<number> {
  const { context } = setup
  const render = createRender(format, screenOf(context))
  const interrupt = onInterrupt(() => animal.agent.cancel('Ctrl-C'))
  const ending = await takeTurn({
    agent: animal.agent,
    prompt,
    render,
    ask,
    always: animal.allowAlways,
    isStanding: animal.isStanding,
    tell: (line) => context.process.stderr.write(`${line}\n`),
    gone: context.outputClosed,
    signal: interrupt.signal,
  })
  interrupt.stop()
  const exitCode = exitCodes[ending.code]
  render.end({ ending, exitCode, runId: animal.agent.runId() ?? '', conversationId: animal.agent.conversationId })
  if (format === 'text') explain(context, ending)
  return exitCode
}

/** A newcomer without any configuration hears once a turn that no model is connected, and how to connect one. */
function introduce({ file, config, context: { env, process } }: Setup): void {
  const answers = providerNamed(config, config.defaultProvider)
  if (file !== undefined || answers?.kind !== 'mock' || answers.fixture !== undefined) return
  const key = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENROUTER_API_KEY', 'OLLAMA_HOST'].find((name) => env[name])
  const how = key
    ? `${key} is set: run "braidclaw init" to use it`
    : 'set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or OLLAMA_HOST and run "braidclaw init"'
  process.stderr.write(`note: the offline helper answers; to connect a real model, ${how}\n`)
}

/** One line on stderr when the answer alone would look better than it went. */
function explain({ process: { stderr } }: CliContext, { code, message }: Ending): void {
  if (code === 'denied') stderr.write(`denied: ${message}\n`)
  else if (code === 'approval_needed') stderr.write(`approval needed: ${message}\n`)
  else if (code === 'estop') stderr.write('stopped: "braidclaw estop --clear" lets tools run again\n')
  else if (code === 'cancelled') stderr.write('cancelled\n')
}

async function converse(setup: Setup, flags: AgentFlags): Promise<void> {
  const [{ createRepl }, { slash, slashCommands }] = await Promise.all([import('../../channels/repl.ts'), import('../slash.ts')])
  const { context } = setup
  const repl = createRepl({
    historyPath: `${setup.paths.home}/history`,
    write: context.process.stdout.write,
    commands: slashCommands.map(([name]) => name.split(' ')[0] ?? name),
  })
  const state = { animal: await wake(setup, { channel: 'cli', ask: repl.ask, conversation: conversationOf(flags) }) }
  try {
    await repl.run(async (line) => {
      const outcome = await slash({
        line,
        setup,
        animal: state.animal,
        fresh: () => wake(setup, { channel: 'cli', ask: repl.ask, conversation: { kind: 'new' } }),
      })
      if (outcome.type === 'exit') return 'exit'
      if (outcome.type === 'animal') state.animal = outcome.animal
      if (outcome.type === 'message') await turn(state.animal, setup, 'text', line, repl.ask)
      return 'on'
    })
  } finally {
    state.animal.close()
    repl.close()
  }
}

function formatOf({ json = false, outputFormat }: AgentFlags): OutputFormat {
  return outputFormat ?? (json ? 'json' : 'text')
}

function conversationOf({ continue: latest = false, resume }: AgentFlags) {
  if (resume !== undefined) return { kind: 'resume', id: resume } as const
  return latest ? ({ kind: 'latest' } as const) : ({ kind: 'new' } as const)
}

function screenOf({ process: { stdout, stderr }, env }: CliContext): Screen {
  const terminal = isTerminal(1)
  return { out: stdout.write, err: stderr.write, terminal, color: isTerminal(2) && !env.NO_COLOR && env.TERM !== 'dumb' }
}
