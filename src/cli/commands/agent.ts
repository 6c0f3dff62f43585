/** `agent`: a conversation in the terminal, or one turn. */

import { createAskLine } from '../../channels/ask.ts'
import type { OutputFormat } from '../../channels/render.ts'
import { openTerminal, stdinKind } from '../../channels/tty.ts'
import { providerNamed } from '../../config/config.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { AgentFlags } from '../routes/types.ts'
import { setUpKept } from '../setup-kept.ts'
import { readStdin } from '../stdin.ts'
import { acceptance, conversationOf, turn } from '../turn.ts'
import type { CliContext, Setup } from '../world.ts'

export async function agent(this: CliContext, flags: AgentFlags): Promise<void> {
  const { workspace, model, autonomy, maxTurns, approveAllMedium } = flags
  const setup = await setUpKept(this, { workspace, model, autonomy, maxTurns, approveAllMedium })
  if (!setup.config.channels.cli.enabled)
    throw new CliExit(exitCodes.error, 'error: [channels.cli] enabled = false; this channel is switched off')
  const message = await messageOf(flags, this)
  introduce(setup)
  if (message === undefined) return (await import('../converse.ts')).converse(setup, flags)
  const exitCode = await oneTurn(setup, flags, message)
  if (exitCode !== 0) throw new CliExit(exitCode)
}

/** The argument, then what stdin carries. Undefined means: a person is at the terminal and wants to talk. */
async function messageOf({ message }: AgentFlags, { process: { stderr } }: CliContext): Promise<string | undefined> {
  const kind = stdinKind()
  if (message === undefined && kind === 'terminal') return undefined
  const piped = kind === 'data' ? await readStdin({ patient: message === undefined, tell: (line) => stderr.write(`${line}\n`) }) : ''
  const whole = [message ?? '', piped.trimEnd()].filter((text) => text.trim() !== '').join('\n\n')
  if (whole !== '') return whole
  throw new CliExit(
    exitCodes.usage,
    'error: nothing to answer: pass -m "message", pipe text in, or run it in a terminal for a conversation',
  )
}

async function oneTurn(setup: Setup, flags: AgentFlags, prompt: string): Promise<number> {
  const terminal = openTerminal()
  const ask = terminal === undefined ? undefined : createAskLine(terminal)
  const animal = await setup.context.wake(setup, { channel: 'cli', ask, conversation: conversationOf(flags), ...acceptance(flags) })
  try {
    return await turn({ animal, setup, format: formatOf(flags), prompt, ...(ask ? { ask } : {}) })
  } finally {
    animal.close()
  }
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

function formatOf({ json = false, outputFormat }: AgentFlags): OutputFormat {
  return outputFormat ?? (json ? 'json' : 'text')
}
