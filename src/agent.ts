/** Exports the library: `import { createAgent } from 'braidclaw'`. It runs the same host as the command line, without a terminal. */

import { version } from '../package.json'
import { channelRows } from './channels/list.ts'
import type { ConversationChoice, ReplayedRun } from './host/api.ts'
import { asValue, type Failure, setUpFor, silentContext } from './host/open/library.ts'
import { openHost } from './host/open/open-host.ts'
import { loadSetup } from './host/setup/setup.ts'
import { type AgentOptions, type BraidClaw, isRule, isThread } from './library/agent/agent-api.ts'
import { conversationAgent } from './library/agent/conversation-agent.ts'
import { prepareThreads } from './runtime/threads/prepare-thread.ts'
import type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-program.ts'

export type { AgentCheck, AgentOptions, AskedChanges, BraidClaw, OwnTool, RuleAsJson, TurnExtras } from './library/agent/agent-api.ts'
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
  const { cwd = process.cwd(), threads = [], tools = [], provider, modelCall, checks } = options
  const functions = prepareThreads(threads.filter(isThread))
  const brought = { tools, rules: threads.filter(isRule), threads: functions, provider, modelCall, checks }
  const { model, permissionMode, maxTurns, conversation = 'new', threads: _, ...around } = options
  const agent = conversationAgent(brought, cwd, () => {
    const context = { ...silentContext({ ...around, channels: channelRows }), cwd, version }
    const setup = loadSetup(context, { workspace: cwd, model, autonomy: permissionMode, maxTurns })
    return { setup, which: choiceOf(conversation), options: { channel: 'library' } }
  })
  return { ...agent, options }
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
