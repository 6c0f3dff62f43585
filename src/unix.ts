/** Exports the library for Unix programs: `import { llmCall, composeSystem, session, tools } from 'braidclaw/unix'`. */

import { statSync } from 'node:fs'
import { channelRows } from './channels/list.ts'
import type { Conversation, ConversationChoice } from './host/api.ts'
import type { FailureCode } from './host/failure.ts'
import { asValue, type HostOptions, setUpFor, unended } from './host/open/library.ts'
import { withConversation } from './host/open/open-host.ts'
import { filterOptions } from './host/run/filter-options.ts'
import { agentProfileOf, runAgent, sessionOf, soulOf } from './host/setup/agent-profile.ts'
import { directCall } from './host/toolset/direct-call.ts'
import { composeSystem as compose } from './memory/agent-files/compose-system.ts'
import { appendSession, archiveSession, countSession, type Loaded, loadSession } from './memory/agent-files/session-file.ts'
import type { JsonObject } from './runtime/event.ts'
import type { Schema } from './runtime/port.ts'

export type { HostOptions } from './host/open/library.ts'
export type { Loaded, SessionEntry } from './memory/agent-files/session-file.ts'

export type LlmOptions = HostOptions & {
  /** Replaces the agent's soul; a text, never a path. */
  readonly system?: string
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** Continues the conversation of the agent's session; otherwise a new conversation begins. */
  readonly continue?: boolean
  /** The agent whose soul, session and log are used; default: the configured agent, or "default". */
  readonly agent?: string
  /**
   * The tools that the model may call: `default`, a folder of executables, or a JSON list. Absent: none. The call asks nobody, so it
   * refuses every tool call that needs approval.
   */
  readonly tools?: string
  readonly signal?: AbortSignal
  /** Receives the answer piece by piece as the model writes it. */
  readonly onText?: (piece: string) => void
}

/** `code` names the exit code of the command line (README). A failure may carry a text, for example an answer after a refused tool call. */
export type Answer =
  | { readonly ok: true; readonly text: string; readonly runId: string; readonly conversationId: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string; readonly text: string }

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

/**
 * Composes the system prompt of an agent's folder: exactly soul.md when nothing else is there, otherwise also context/*.md by name, pins
 * and summary.
 * @throws Error when the folder does not exist, or its soul cannot be read
 */
export async function composeSystem(folder: string): Promise<string> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`no folder "${folder}"; name that of an agent`)
  const composed = await compose({ folder })
  if (!composed.ok) throw new Error(composed.message)
  return composed.text
}

/**
 * Reads and writes files of {"ts","role","content"} lines. It redacts nothing. All functions throw errno errors, except that a missing file
 * counts as empty.
 */
export const session = {
  /** Appends one line in one write, which is safe beside other writers. It creates the file and its folder when absent. */
  append(file: string, role: string, content: string): void {
    appendSession(file, [{ role, content }], Date.now())
  },
  /** Loads the last `limit` entries, or all without a limit. It skips torn and foreign lines and counts them in `unreadable`. */
  load(file: string, limit?: number): Loaded {
    return loadSession(file, limit)
  },
  count(file: string): number {
    return countSession(file)
  },
  /** Archives the file as `<time>.jsonl` beside it. @returns the path of the archive, undefined when there was no file */
  clear(file: string): string | undefined {
    return archiveSession(file, Date.now())
  },
}

export type ToolInfo = { readonly name: string; readonly description: string; readonly parameters: Schema; readonly risk: string }

export type ToolOptions = HostOptions & {
  /** The tools as for `llmCall`; default: the built-in tools and the operator's own. */
  readonly tools?: string
}

/** `denied`: the gate refused the call, or would have had to ask. */
export type ToolRun =
  | { readonly ok: true; readonly output: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string }

export const tools = {
  /** @throws Error when the configuration or the named tools cannot be used */
  async list({ tools: named, ...options }: ToolOptions = {}): Promise<readonly ToolInfo[]> {
    const setup = setUpFor({ ...options, channels: channelRows }, {})
    const [{ createToolRuntime }, { everything, parseToolsOption }, { policyOf }] = await Promise.all([
      import('./host/toolset/tool-executor.ts'),
      import('./host/toolset/tools-option.ts'),
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

async function runTool(name: string, input: JsonObject, { tools: named, ...options }: ToolOptions): Promise<ToolRun> {
  const setup = setUpFor({ ...options, channels: channelRows }, {})
  const request = (await import('./host/toolset/tools-option.ts')).toolsFor(setup, name, named)
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
