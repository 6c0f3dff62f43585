/** Exports the library: `import { createAgent } from 'braidclaw'`. It runs the same host as the command line, without a terminal. */

import { channelRows } from './channels/list.ts'
import type { ConversationChoice, ReplayedRun } from './host/api.ts'
import { asValue, type Failure, setUpFor, silentContext } from './host/open/library.ts'
import { openHost } from './host/open/open-host.ts'
import { loadSetup } from './host/setup/setup.ts'
import type { ProgramTool } from './host/toolset/own-tools.ts'
import { type AgentOptions, type BraidClaw, isRule, isThread, type RuleAsJson } from './library/agent/agent-api.ts'
import { conversationAgent, type Opened, openFor, programTools } from './library/agent/conversation-agent.ts'
import { modelCallProvider } from './providers/model-call.ts'
import { withUsableReplies } from './providers/usable-reply.ts'
import type { Provider } from './runtime/port.ts'
import { type PreparedThread, prepareThreads } from './runtime/threads/prepare-thread.ts'
import type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-program.ts'

export type { AgentOptions, AskedChanges, BraidClaw, RuleAsJson } from './library/agent/agent-api.ts'
export type { OwnTool } from './library/agent/own-tool.ts'
export type { ModelCall } from './providers/model-call.ts'
export type { Change, ChangeReview, ChangeSet, EntryState } from './runtime/changes.ts'
export type { AgentEvent, Ending, Proposal } from './runtime/event.ts'
export type { ChatRequest, ChatResponse, Message, ModelChunk, Provider, ProviderFailure } from './runtime/port.ts'
export type { Thread, ThreadBid, ThreadEvent, ThreadPattern } from './runtime/threads/thread.ts'
export { type JudgedCall, veto } from './runtime/threads/thread.ts'
export type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-program.ts'

/**
 * Creates an agent. It opens nothing before the first run. Agents of one home share a host; agents with equal settings also share provider,
 * policy and sandbox.
 * @throws Error when a thread or a tool is not valid; the message says why
 */
export function createAgent(options: AgentOptions = {}): BraidClaw {
  const { cwd = process.cwd(), threads = [], tools = [] } = options
  const rules = threads.filter(isRule)
  const prepared = prepareThreads(threads.filter(isThread))
  const own = programTools(tools, cwd)
  return conversationAgent(() => open({ ...options, cwd, rules, own, prepared }), prepared)
}

type Opening = Omit<AgentOptions, 'threads' | 'tools'> & {
  readonly cwd: string
  readonly rules: readonly RuleAsJson[]
  readonly own: readonly ProgramTool[]
  readonly prepared: readonly PreparedThread[]
}

function open({ cwd, rules, own, prepared, ...options }: Opening): Promise<Opened> {
  const { model, permissionMode, maxTurns, conversation = 'new', ...around } = options
  const context = { ...silentContext({ ...around, channels: channelRows }), cwd }
  const loaded = loadSetup(context, { workspace: cwd, model, autonomy: permissionMode, maxTurns })
  const setup = rules.length === 0 ? loaded : { ...loaded, ownRules: rules }
  const settings = { channel: 'library', threads: prepared, provider: providerOf(options), programTools: own }
  return openFor(setup, choiceOf(conversation), settings)
}

function providerOf({ provider, modelCall }: AgentOptions): Provider | undefined {
  const provided = provider ?? (modelCall ? modelCallProvider(modelCall) : undefined)
  return provided && withUsableReplies(provided)
}

function choiceOf(conversation: string): ConversationChoice {
  return conversation === 'new' || conversation === 'latest' ? { kind: conversation } : { kind: 'resume', id: conversation }
}

/**
 * Runs the model checker over the agent program with these threads; it runs no turn and opens no home. @throws Error when a thread is not
 * valid
 */
export async function verifyAgent(options: VerifyAgentOptions): Promise<AgentReport> {
  return (await import('./runtime/verify/verify-program.ts')).verifyAgent(options)
}

export type ReplayOptions = Pick<AgentOptions, 'home' | 'env' | 'log' | 'threads'> & {
  /** A run id as `run list` shows it, a unique prefix of it, or `last`. */
  readonly runId: string
}

export type Replayed = ({ readonly ok: true } & ReplayedRun) | ({ readonly ok: false } & Failure)

/**
 * Replays a past run from its journal with the threads it had; it executes, asks and fetches nothing. @throws Error when a thread is not
 * valid
 */
export function replay({ runId, threads = [], ...around }: ReplayOptions): Promise<Replayed> {
  return asValue<Replayed>(
    async () => {
      const functions = threads.filter(isThread)
      prepareThreads(functions)
      const host = await openHost(setUpFor({ ...around, channels: channelRows }, {}), { ahead: false })
      try {
        return { ok: true, ...(await host.replay(runId, functions)) }
      } finally {
        await host.close()
      }
    },
    (failure) => ({ ok: false, ...failure }),
  )
}
