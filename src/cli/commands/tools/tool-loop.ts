/** Implements `tool loop` by the contract of all three loops: text on stdout; exit 0 answered, 1 error, 2 too many rounds. */

import { type Trace, traceOf, traceResult } from '../../../channels/filter/loop-trace.ts'
import { type BackendEnd, backendOf, runBackend } from '../../../channels/filter/tool-backend.ts'
import { takeTurn } from '../../../channels/take-turn.ts'
import { atTerminal, tellOnStderr, terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { readStdin } from '../../../channels/terminal/input-stream.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { withConversation } from '../../../host/open/open-host.ts'
import { agentProfileOf } from '../../../host/setup/agent-profile.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { parseToolsOption } from '../../../host/toolset/tools-option.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Provider } from '../../../runtime/port.ts'
import { type Arguments, command, type Flags, type Given } from '../../args/command.ts'
import { approveFlag, autonomyFlag, loggingAgentFlag, modelFlag, sandboxFlag, toolEnvFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitOf } from '../../exit.ts'

const flags = {
  toolBackend: { type: 'text', about: 'Who runs the loop: native, bash, llm or elixir (default: tools.backend)' },
  model: { ...modelFlag.model, short: 'm' },
  ...loggingAgentFlag,
  ...sandboxFlag,
  ...toolEnvFlag,
  ...approveFlag,
  ...autonomyFlag,
  ...workspaceFlag,
} as const satisfies Flags
const args = {
  message: { type: 'text', about: 'The question; "-" reads it from stdin' },
  system: { type: 'text', about: 'The system prompt' },
  tools: { type: 'text', about: 'Which tools, as --tools takes them' },
  max: { type: 'whole', optional: true, about: 'Rounds of tool calls (default: limits.max_tool_rounds)' },
} as const satisfies Arguments
type ToolLoopFlags = Given<typeof flags>

type Asked = { readonly message: string; readonly system: string; readonly tools: string }

/** Its exit codes differ from those of the other commands: every other error is 1. */
export const loop = command({
  flags,
  args,
  examples: [['"Is the disk full?" "Be brief." tools.json 8', 'the contract of every loop']],
  usageExit: 1,
  exits: [
    [1, 'error, also a wrong command line'],
    [2, 'too many rounds'],
  ],
  async run(context, given, { message, system, tools, max }) {
    const end = await attempt(context, given, { text: message, system, tools, max }).catch((error: unknown): BackendEnd => {
      const { message } = exitOf(error)
      if (message) context.process.stderr.write(`${message}\n`)
      return { code: 1, text: '' }
    })
    if (end.text !== '') context.process.stdout.data(`${end.text}\n`)
    if (end.code !== 0) throw new CliExit(end.code)
  },
})

type Words = { readonly text: string; readonly system: string; readonly tools: string; readonly max: number | undefined }

async function attempt(context: CliContext, flags: ToolLoopFlags, { text, system, tools, max }: Words): Promise<BackendEnd> {
  const { model, sandbox } = flags
  // The program llm has its own model names.
  const setup = loadSetup(context, { ...flags, model: flags.toolBackend === 'llm' ? undefined : model, maxTurns: max })
  const agent = agentProfileOf(setup).id
  const backend = backendOf(setup, flags.toolBackend)
  const tell = (line: string) => context.process.stderr.write(`${line}\n`)
  const message = text === '-' ? await readStdin({ patient: true, tell }) : text
  if (message.trim() === '') throw commandError('nothing to answer: the message is empty')
  const trace = traceOf(setup)
  trace('user_input', message)
  const asked = { message, system, tools }
  const end =
    backend === 'native'
      ? await native(setup, flags, { ...asked, trace, iteration: traceOf(setup, context.env.LOG_FILE) })
      : await runBackend({ setup, backend, ...asked, agent, model, sandbox })
  trace(end.code === 0 ? 'llm_response' : 'error', end.code === 0 ? end.text : end.code === 2 ? 'too many rounds' : 'the loop failed')
  return end
}

async function native(
  setup: CliSetup,
  { sandbox }: ToolLoopFlags,
  { message, system, tools, trace, iteration }: Asked & { readonly trace: Trace; readonly iteration: Trace },
): Promise<BackendEnd> {
  const { context } = setup
  const ask = terminalPrompt(context)
  const options = {
    setup,
    which: { kind: 'new' },
    channel: 'tool-loop',
    ask,
    provider: traced(await providerFor(setup, setup.config.defaultProvider), trace, iteration),
    tools: parseToolsOption(setup, tools),
    systemPrompt: system,
    sandbox,
  } as const
  return withConversation(options, async (conversation) => {
    using interrupt = onInterrupt(conversation.cancel)
    const tell = tellOnStderr(context)
    const { show, text } = listen(trace, tell)
    const ending = await takeTurn({ ...atTerminal({ context, conversation, ask, signal: interrupt.signal }), prompt: message, show })
    if (ending.stop === 'end_turn' && ending.code !== 'estop') return { code: 0, text: text() }
    if (ending.code !== 'limit') tell(`error: ${ending.message}`)
    return { code: ending.code === 'limit' ? 2 : 1, text: '' }
  })
}

/** Traces each model request as one iteration; the results of its calls arrive with the next request. */
function traced(provider: Provider, trace: Trace, iteration: Trace): Provider {
  const state = { iterations: 0, told: 0 }
  return {
    ...provider,
    chat(request, signal) {
      const results = request.messages.filter((message) => message.role === 'tool')
      for (const { name, content, isError } of results.slice(state.told)) traceResult(trace, { name, text: content, ok: !isError })
      state.told = results.length
      iteration('iteration', String(++state.iterations))
      return provider.chat(request, signal)
    },
  }
}

function listen(trace: Trace, tell: (line: string) => void) {
  const state = { text: '' }
  const show = (event: AgentEvent) => {
    if (event.type === 'tool_use') trace('tool_call', `${event.toolName} ${JSON.stringify(event.input)}`)
    else if (event.type === 'error') tell(`${event.recoverable ? 'warning' : 'error'}: ${event.message}`)
    else if (event.type === 'done') state.text = event.result ?? ''
  }
  return { show, text: () => state.text }
}
