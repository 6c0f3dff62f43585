/** `tool list | run`: the same tools, the same gate, the same receipts as a model's calls. */

import { createAskLine } from '../../channels/ask.ts'
import { openTerminal } from '../../channels/tty.ts'
import { takeTurn } from '../../channels/turn.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import { directCall } from '../direct-call.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { createHands } from '../hands.ts'
import { onInterrupt } from '../interrupt.ts'
import { policyOf } from '../policy.ts'
import type { Json, Workspace } from '../routes/flags.ts'
import type { ToolRunFlags } from '../routes/types.ts'
import { setUp } from '../setup.ts'
import { readStdin } from '../stdin.ts'
import type { CliContext } from '../world.ts'
import { parseObject } from './policy.ts'

export async function list(this: CliContext, { workspace, json = false }: Workspace & Json): Promise<void> {
  const setup = setUp(this, { workspace })
  const { config, paths } = setup
  const hands = await createHands({ setup, policy: policyOf(config, paths, this.env), conversationId: 'list' })
  const rows = hands.all.map((tool) => ({
    name: tool.name,
    description: tool.description,
    risk: tool.risk,
    active: hands.tools.includes(tool),
    parameters: tool.parameters,
  }))
  if (json) return void this.process.stdout.write(`${JSON.stringify(rows)}\n`)
  for (const { name, description, risk, active } of rows) {
    this.process.stdout.write(
      `${active ? ' ' : '-'} ${name.padEnd(14)} ${risk.padEnd(7)} ${description}${active ? '' : ' (not in channels.cli.tools_allow)'}\n`,
    )
  }
}

export async function run(
  this: CliContext,
  { json, workspace, autonomy, approveAllMedium, sandbox }: ToolRunFlags,
  name: string,
): Promise<void> {
  const setup = setUp(this, { workspace, autonomy, approveAllMedium })
  const input = parseObject(
    json === '-' ? await readStdin({ patient: true, tell: (line) => this.process.stderr.write(`${line}\n`) }) : json,
  )
  const terminal = openTerminal()
  const ask = terminal === undefined ? undefined : createAskLine(terminal)
  const animal = await this.wake(setup, {
    channel: 'cli',
    ask,
    conversation: { kind: 'new' },
    provider: directCall(name, input),
    ...(sandbox ? { sandbox } : {}),
  })
  const interrupt = onInterrupt((by) => animal.agent.cancel(by))
  const seen: { result?: Extract<AgentEvent, { type: 'tool_result' }> } = {}
  try {
    const ending = await takeTurn({
      agent: animal.agent,
      prompt: `tool run ${name}`,
      render: {
        show: (event) => {
          if (event.type === 'tool_result') seen.result = event
        },
        end: () => {},
      },
      ask,
      always: animal.allowAlways,
      isStanding: animal.isStanding,
      tell: (line) => this.process.stderr.write(`${line}\n`),
      gone: this.outputClosed,
      signal: interrupt.signal,
    })
    const output = typeof seen.result?.output === 'string' ? seen.result.output : ''
    if (seen.result?.status !== 'completed') {
      throw new CliExit(exitCodes[ending.code] || exitCodes.error, `error: ${name}: ${output || ending.message}`)
    }
    this.process.stdout.write(output.endsWith('\n') || output === '' ? output : `${output}\n`)
  } finally {
    interrupt.stop()
    animal.close()
  }
}
