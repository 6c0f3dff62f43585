/** The library of the Unix half: `import { llmCall, composeSystem, session, tools } from 'braidclaw/unix'`. */

import { statSync } from 'node:fs'
import { channelRows } from './channels/list.ts'
import type { Conversation, ConversationChoice, Setup } from './host/api.ts'
import type { FailureCode } from './host/failure.ts'
import { asValue, type HostOptions, setUpFor, unended } from './host/library.ts'
import { withConversation } from './host/open-host.ts'
import { filterOptions } from './host/run/filter-options.ts'
import { agentProfileOf, runAgent, sessionOf, soulOf } from './host/setup/agent-profile.ts'
import { directCall } from './host/toolset/direct-call.ts'
import { composeSystem as compose } from './memory/agent-files/compose-system.ts'
import { appendSession, archiveSession, countSession, type Loaded, loadSession } from './memory/agent-files/session-file.ts'
import type { JsonObject } from './runtime/event.ts'
import type { Schema } from './runtime/port.ts'

export type { HostOptions } from './host/library.ts'
export type { Entry, Loaded } from './memory/agent-files/session-file.ts'

export type LlmOptions = HostOptions & {
  /** In place of the agent's soul; a text, never a path. */
  readonly system?: string
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** Go on with the conversation of the agent's session; without one a new one begins. */
  readonly continue?: boolean
  /** Whose soul, session and log; default: the configured one, or "default". */
  readonly agent?: string
  /** What the model may call: `default`, a folder of executables, or a JSON list. Absent: nothing. Nobody is asked: what needs a yes is refused. */
  readonly tools?: string
  readonly signal?: AbortSignal
  /** The answer while it is written. */
  readonly onText?: (piece: string) => void
}

/** `code` names the exit code of the command line (README). A failure may come with a text: an answer over a refused tool, for one. */
export type Answer =
  | { readonly ok: true; readonly text: string; readonly runId: string; readonly conversationId: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string; readonly text: string }

/** One question, one answer: the filter as a function. Journalled, redacted and mirrored like any other turn. Throws for bugs alone. */
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
  const request = await filterOptions({
    setup,
    system: system ?? (await soulOf(setup, agentProfile)),
    ...(named === undefined ? {} : { tools: named }),
  })
  const which: ConversationChoice = options.continue ? sessionOf(agentProfile) : { kind: 'new' }
  return withConversation({ setup, which, channel: 'library', ...request, agent: runAgent(agentProfile) }, async (conversation) => {
    const seen = { text: '' }
    for await (const event of conversation.run(message, signal)) {
      if (event.type === 'text' && event.isPartial) onText?.(event.content)
      if (event.type === 'approval_gate') await refuse(conversation, event.gateId)
      if (event.type === 'done') seen.text = event.result ?? ''
    }
    const ending = conversation.ending() ?? unended
    if (ending.code !== 'answered') return { ok: false, code: ending.code, message: ending.message, text: seen.text }
    return { ok: true, text: seen.text, runId: conversation.runId() ?? '', conversationId: conversation.id }
  })
}

async function refuse(conversation: Conversation, gateId: string): Promise<void> {
  await conversation.approve(gateId, { allow: false, by: 'nobody', note: 'a library call asks nobody' })
}

/**
 * The system prompt of an agent's folder: exactly soul.md where there is nothing else, then context/*.md by name, pins and summary.
 * @throws Error when there is no such folder, or its soul cannot be read
 */
export async function composeSystem(folder: string): Promise<string> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`no folder "${folder}"; name that of an agent`)
  const composed = await compose({ folder })
  if (!composed.ok) throw new Error(composed.message)
  return composed.text
}

/** Files of {"ts","role","content"} lines. Nothing is redacted here. All throw errno errors, but for a file that is not there: it is empty. */
export const session = {
  /** One line, in one write: safe beside other writers. The file and its folder are made when absent. */
  append(file: string, role: string, content: string): void {
    appendSession(file, [{ role, content }], Date.now())
  },
  /** The last `limit` entries, all without it. Torn and foreign lines are left out, and counted in `unreadable`. */
  load(file: string, limit?: number): Loaded {
    return loadSession(file, limit)
  },
  count(file: string): number {
    return countSession(file)
  },
  /** Archives it as `<time>.jsonl` beside it. @returns that path, undefined when there was nothing */
  clear(file: string): string | undefined {
    return archiveSession(file, Date.now())
  },
}

export type ToolInfo = { readonly name: string; readonly description: string; readonly parameters: Schema; readonly risk: string }

export type ToolOptions = HostOptions & {
  /** As llmCall's; default: the ten and the operator's own. */
  readonly tools?: string
}

/** `denied`: the gate refused, or would have had to ask. */
export type ToolRun =
  | { readonly ok: true; readonly output: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string }

export const tools = {
  /** @throws Error when the configuration or the named tools cannot be used */
  async list({ tools: named, ...options }: ToolOptions = {}): Promise<readonly ToolInfo[]> {
    const setup = setUpFor({ ...options, channels: channelRows }, {})
    const [{ createToolRuntime }, { policyOf }] = await Promise.all([
      import('./host/toolset/tool-executor.ts'),
      import('./host/setup/effective-policy.ts'),
    ])
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    const request =
      named === undefined ? await everythingFor(setup) : (await import('./host/toolset/tools-option.ts')).parseToolsOption(setup, named)
    const toolRuntime = await createToolRuntime({ setup, policy, conversationId: 'list', tools: request })
    toolRuntime.close()
    return toolRuntime.tools.map(({ name, description, parameters, risk }) => ({ name, description, parameters, risk }))
  },
  /** One call through the same gate as the model's, with a receipt. Nobody is asked. Throws for bugs alone. */
  run(name: string, input: JsonObject, options: ToolOptions = {}): Promise<ToolRun> {
    return asValue<ToolRun>(
      () => runTool(name, input, options),
      (failure) => ({ ok: false, ...failure }),
    )
  },
}

async function everythingFor(setup: Setup) {
  return (await import('./host/toolset/tool-selections.ts')).everything(setup)
}

async function runTool(name: string, input: JsonObject, { tools: named, ...options }: ToolOptions): Promise<ToolRun> {
  const setup = setUpFor({ ...options, channels: channelRows }, {})
  const request = await (await import('./host/toolset/tool-selections.ts')).wishFor(setup, name, named)
  const provider = directCall({ name, input })
  const call = { setup, which: { kind: 'new' }, channel: 'library', provider, tools: request, systemPrompt: '' } as const
  return withConversation(call, async (conversation) => {
    const seen = { done: false, output: '' }
    for await (const event of conversation.run(`tool run ${name}`)) {
      if (event.type === 'approval_gate') await refuse(conversation, event.gateId)
      if (event.type === 'tool_result') Object.assign(seen, { done: event.status === 'completed', output: String(event.output ?? '') })
    }
    if (seen.done) return { ok: true, output: seen.output }
    const { code, message } = conversation.ending() ?? unended
    return { ok: false, code: code === 'answered' ? 'error' : code, message: seen.output || message }
  })
}
