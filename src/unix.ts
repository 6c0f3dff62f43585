/** Exports the library for Unix programs: `import { llmCall, composeSystem, session, tools } from 'braidclaw/unix'`. */

import { channelRows } from './channels/list.ts'
import type { Conversation, ConversationChoice } from './host/api.ts'
import { asValue, setUpFor, unended } from './host/open/library.ts'
import { withConversation } from './host/open/open-host.ts'
import { filterOptions } from './host/run/filter-options.ts'
import { agentProfileOf, runAgent, sessionOf, soulOf } from './host/setup/agent-profile.ts'
import { directCall } from './host/toolset/direct-call.ts'
import type { Answer, LlmOptions, ToolInfo, ToolOptions, ToolRun } from './library/remote/unix-api.ts'
import type { JsonObject } from './runtime/event.ts'

export type { HostOptions } from './host/open/library.ts'
export type { Answer, LlmOptions, ToolInfo, ToolOptions, ToolRun } from './library/remote/unix-api.ts'
export { composeSystem, session } from './library/remote/unix-api.ts'
export type { Loaded, SessionEntry } from './memory/agent-files/session-file.ts'

/**
 * Sends one question and returns one answer: the filter as a function. The turn is journalled, redacted and written to the agent's files
 * like any other. It throws only for bugs.
 */
export function llmCall(message: string, options: LlmOptions = {}): Promise<Answer> {
  return asValue<Answer>(
    () => ask(message, options),
    (failure) => ({ ok: false, ...failure, text: '' }),
  )
}

async function ask(message: string, { system, tools: named, onText, signal, ...options }: LlmOptions): Promise<Answer> {
  if (message.trim() === '') return { ok: false, code: 'usage', message: 'there is nothing to answer: the message is empty', text: '' }
  const setup = setUpFor({ ...options, channels: channelRows }, { model: options.model, agent: options.agent })
  const agentProfile = agentProfileOf(setup)
  const request = await filterOptions({ setup, system: system ?? (await soulOf(setup, agentProfile)), tools: named })
  const which: ConversationChoice = options.continue ? sessionOf(agentProfile) : { kind: 'new' }
  return withConversation({ setup, which, channel: 'library', ...request, agent: runAgent(agentProfile) }, async (conversation) => {
    const result = { text: '' }
    for await (const event of conversation.run(message, signal)) {
      if (event.type === 'text' && event.isPartial) onText?.(event.content)
      if (event.type === 'approval_gate') await refuse(conversation, event.gateId)
      if (event.type === 'done') result.text = event.result ?? ''
    }
    const ending = conversation.ending() ?? unended
    if (ending.code !== 'answered') return { ok: false, code: ending.code, message: ending.message, text: result.text }
    return { ok: true, text: result.text, runId: conversation.runId() ?? '', conversationId: conversation.id }
  })
}

async function refuse(conversation: Conversation, gateId: string): Promise<void> {
  await conversation.approve(gateId, { allow: false, by: 'nobody', note: 'a library call asks nobody' })
}

export const tools = {
  /** @throws Error when the configuration or the named tools cannot be used */
  async list({ tools: named, ...options }: ToolOptions = {}): Promise<readonly ToolInfo[]> {
    const setup = setUpFor({ ...options, channels: channelRows }, {})
    const [{ createToolRuntime }, { everything, parseToolsOption }, { policyOf }] = await Promise.all([
      import('./host/toolset/tool-executor.ts'),
      toolsOption(),
      import('./host/setup/effective-policy.ts'),
    ])
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    const request = named === undefined ? everything(setup) : parseToolsOption(setup, named)
    const toolRuntime = await createToolRuntime({ setup, policy, conversationId: 'list', tools: request })
    await toolRuntime.close()
    return toolRuntime.tools.map(({ name, description, parameters, risk }) => ({ name, description, parameters, risk }))
  },
  /** Runs one call through the same gate as the model's calls, with a receipt. It asks nobody. It throws only for bugs. */
  run(name: string, input: JsonObject, options: ToolOptions = {}): Promise<ToolRun> {
    return asValue<ToolRun>(
      () => runTool(name, input, options),
      (failure) => ({ ok: false, ...failure }),
    )
  },
}

const toolsOption = () => import('./host/toolset/tools-option.ts')

async function runTool(name: string, input: JsonObject, { tools: named, ...options }: ToolOptions): Promise<ToolRun> {
  const setup = setUpFor({ ...options, channels: channelRows }, {})
  const request = (await toolsOption()).toolsFor(setup, name, named)
  const provider = directCall({ name, input })
  const call = { setup, which: { kind: 'new' }, channel: 'library', provider, tools: request, systemPrompt: '' } as const
  return withConversation(call, async (conversation) => {
    const result = { done: false, output: '' }
    for await (const event of conversation.run(`tool run ${name}`)) {
      if (event.type === 'approval_gate') await refuse(conversation, event.gateId)
      if (event.type === 'tool_result') Object.assign(result, { done: event.status === 'completed', output: String(event.output ?? '') })
    }
    if (result.done) return { ok: true, output: result.output }
    const { code, message } = conversation.ending() ?? unended
    return { ok: false, code: code === 'answered' ? 'error' : code, message: result.output || message }
  })
}
