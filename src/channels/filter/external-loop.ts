/**
 * Runs a filter call through an external tool loop (`--tool-backend`) and writes its lines to the agent's files, from which the next turn
 * reads them.
 */

import { FailureError } from '../../host/failure.ts'
import type { AgentProfile } from '../../host/setup/agent-profile.ts'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { CliSetup } from '../terminal/context.ts'
import { createLoopTalk } from './loop-trace.ts'
import { backendOf, runBackend } from './tool-backend.ts'

export type Loop = {
  readonly setup: CliSetup
  /** As the flag --tool-backend names it. */
  readonly backend?: string | undefined
  /** A flag that an external loop does not support. */
  readonly odd?: string | undefined
  readonly model?: string | undefined
  readonly sandbox?: SandboxKind | undefined
  readonly agentProfile: AgentProfile
  readonly prompt: string
  readonly system: string
  readonly tools?: string | undefined
}

/** @returns the exit code; undefined when the native loop has to run. @throws FailureError `usage` for flags that do not go together */
export async function runExternalLoop({ setup, agentProfile, prompt, tools, odd, ...asked }: Loop): Promise<number | undefined> {
  if (tools === undefined) throw new FailureError('usage', '--tool-backend runs a loop with tools; name them with --tools')
  const backend = backendOf(setup, asked.backend)
  if (backend === 'native') return undefined
  if (odd !== undefined)
    throw new FailureError('usage', `${odd} means nothing with the tool backend "${backend}"; it is for --tool-backend native`)
  const talk = createLoopTalk(setup, agentProfile)
  talk.asked(prompt)
  try {
    const { system, model, sandbox } = asked
    const { code, text, cancelled } = await runBackend({
      setup,
      backend,
      message: prompt,
      system,
      tools,
      agent: agentProfile.id,
      model,
      sandbox,
    })
    if (cancelled) return setup.context.exitCodeOf('cancelled')
    if (code === 0) talk.answered(text.replace(/\n$/, ''))
    if (text !== '') setup.context.process.stdout.data(text.endsWith('\n') ? text : `${text}\n`)
    return code === 2 ? setup.context.exitCodeOf('limit') : code
  } finally {
    talk.end()
  }
}
