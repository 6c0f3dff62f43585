/** Runs the command of a check as a person's call of the tool shell: through the gate, in the sandbox, with a receipt, on a view that is dropped. */

import type { AgentEvent } from '../../runtime/event.ts'
import type { Conversation, Setup } from '../api.ts'
import { shellTimesOf } from '../setup/run-limits.ts'
import { directCall } from '../toolset/direct-call.ts'
import { type Attempt, type CheckContext, type CheckSpec, notRun } from './contract.ts'
import { staticToolOf, summarised, withOwnProgram } from './static-tools.ts'

type Gate = Extract<AgentEvent, { type: 'approval_gate' }>

/** @throws whatever keeps the conversation from opening */
export async function runCommand(spec: CheckSpec & { readonly command: string }, on: CheckContext): Promise<Attempt> {
  const { host, sandbox, signal, channel = 'check', opened } = on
  const { setup, seconds } = withTime(on.setup, spec.timeoutMs)
  const tool = spec.tier === 1 ? staticToolOf(spec.command) : undefined
  const own = tool ? withOwnProgram(spec.command, setup.config.workspaceDir) : spec.command
  // One stream keeps the order of what it prints, so that equal outcomes print equal texts.
  const command = `{ ${own}\n} 2>&1`
  const conversation = await host.conversation(
    { kind: 'new' },
    {
      ...{ channel, setup, sandbox },
      provider: directCall({ name: 'shell', input: { command, timeout: seconds } }),
      tools: { builtIn: ['shell'] },
      systemPrompt: '',
      dryRun: true,
    },
  )
  try {
    opened?.(conversation)
    let shown = ''
    for await (const event of conversation.run(`check ${spec.name}`, signal)) {
      if (event.type === 'tool_result') shown = String(event.output ?? '')
      if (event.type === 'approval_gate')
        await conversation.approve(event.gateId, { allow: false, by: 'check', note: refusal(event, conversation) })
    }
    const { store } = await host.schedules()
    const outcome = store.lastOutcomeOf(conversation.runId() ?? '')
    const ended = conversation.ending()
    if (ended?.code === 'cancelled' || ended?.code === 'estop') return notRun(ended.message || 'cancelled')
    const { exitCode, signal: by } = outcome?.metadata ?? {}
    const ran = typeof exitCode === 'number' || typeof by === 'string'
    const output = tool && outcome ? summarised(tool, outcome.output) : outcome?.output
    const evidence = [output, outcome?.error].filter((text) => text !== undefined && text !== '').join('\n')
    const isMissing = tool !== undefined && exitCode === 127
    if (!ran || outcome === undefined || isMissing) return notRun(evidence || shown || (ended?.message ?? ''))
    return { pass: exitCode === 0, evidence, ...(typeof exitCode === 'number' && { exit: exitCode }) }
  } finally {
    await conversation.close()
  }
}

function refusal({ gateId, changes }: Gate, conversation: Pick<Conversation, 'gate'>): string {
  if (changes) return 'a check changes nothing'
  return `a check asks nobody, and this command needs a yes: ${conversation.gate(gateId)?.judgement.reason}`
}

/** Lets a command run for as long as its check may; only then the settings differ from those of other conversations. */
function withTime(setup: Setup, timeoutMs: number | undefined): { readonly setup: Setup; readonly seconds: number } {
  const { limits } = setup.config
  const { longestS } = shellTimesOf(limits)
  const seconds = Math.max(1, Math.ceil((timeoutMs ?? longestS * 1_000) / 1_000))
  if (seconds <= longestS) return { setup, seconds }
  return { setup: { ...setup, config: { ...setup.config, limits: { ...limits, shellTimeoutMaxS: seconds } } }, seconds }
}
