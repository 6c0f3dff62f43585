/**
 * Opens the conversations of a long-lived agent: its own, whose history is in its files, and one for each other place where people talk to
 * it.
 */

import { existsSync } from 'node:fs'
import type { ChannelProfile } from '../host/access/channel-profile.ts'
import type { Conversation, ConversationOptions, Host, Past, Setup } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import { type AgentProfile, runAgent, sessionOf, soulOf } from '../host/setup/agent-profile.ts'
import { errorText } from '../kit/errors.ts'
import { openRecall, type Recall } from '../memory/agent-files/agent-memory.ts'
import { summariserOf } from '../memory/conversations/compact.ts'
import type { Provider } from '../runtime/port.ts'
import type { AnsweringConversation } from './answer-message.ts'
import type { InboundMessage } from './inbox/channel-api.ts'

export type AgentConversations = ReturnType<typeof createAgentConversations>

/** Without `access` it is the operator's own conversation. */
type Addressed = Pick<InboundMessage, 'conversation'> & { readonly access?: ChannelProfile }

export type ConversationsOptions = Pick<ConversationOptions, 'tools' | 'sandbox'> & {
  readonly host: Host
  readonly agentProfile: AgentProfile
  readonly provider: Provider
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

export function createAgentConversations(options: ConversationsOptions) {
  const { host, agentProfile, provider, tools, sandbox, signal } = options
  const { setup } = host
  const { log } = setup
  const recall = recallOf(setup, agentProfile)
  const open = new Map<string | undefined, Promise<AnsweringConversation>>()
  const opened = new Set<Conversation>()
  const common = { provider, tools, sandbox }

  async function own(): Promise<AnsweringConversation> {
    const past = async (tokens: number) => ({ ...(await words()), history: history(tokens) })
    const conversation = await host.conversation(sessionOf(agentProfile), {
      ...common,
      channel: 'daemon',
      agent: { ...runAgent(agentProfile), remembers: true },
      past,
    })
    return {
      conversation,
      async compact() {
        try {
          await recall.compact(summariserOf({ provider, model: setup.config.defaultModel }), signal)
        } catch (error) {
          log('error', 'compaction failed', { why: errorText(error) })
        }
      },
    }
  }

  async function other(name: string, access: ChannelProfile | undefined): Promise<AnsweringConversation> {
    const which = { kind: 'called', name: `${agentProfile.id} ${name}` } as const
    const past = access?.memory === 'own' ? soulAlone : words
    const conversation = await host.conversation(which, { ...common, access, channel: name.split(' ')[0] ?? name, past })
    return { conversation, compact: async () => void (await conversation.compact({ tell: (line) => log('info', line), signal })) }
  }

  function history(tokens: number) {
    const { messages, omittedTurns } = recall.context(tokens)
    if (omittedTurns > 0) log('debug', 'context trimmed', { omittedTurns })
    return messages
  }

  /** Without built-in tools the prompt does not mention the workspace: the soul is the whole system prompt. */
  async function words(): Promise<Past> {
    return worded(isComposed(setup, agentProfile) ? await soulOf(setup, agentProfile) : recall.system())
  }

  /** Leaves out the context files, the summary and the pins: they come from the operator. */
  async function soulAlone(): Promise<Past> {
    return worded((await soulOf(setup, agentProfile, { alone: true })) || recall.soul())
  }

  function worded(soul: string): Past {
    return tools?.builtIn.length === 0 ? { systemPrompt: soul } : { soul }
  }

  async function begin({ conversation: name, access }: Addressed): Promise<AnsweringConversation> {
    const answering = await (name === undefined ? own() : other(name, access))
    opened.add(answering.conversation)
    return answering
  }

  return {
    /** Returns the agent's own conversation when there is no name; opens a conversation on first use. @throws FailureError */
    answering(message: Addressed): Promise<AnsweringConversation> {
      const key = message.conversation === undefined ? undefined : `${message.access?.channel} ${message.conversation}`
      const found = open.get(key) ?? begin(message)
      open.set(key, found)
      found.catch(() => open.delete(key))
      return found
    },
    /** Cancels the turns of all open conversations. */
    cancel(by: string): void {
      for (const conversation of opened) conversation.cancel(by)
    },
  }
}

function recallOf({ config, log, redactor }: Setup, { paths }: AgentProfile): Recall {
  const { historyMax: max, historyKeep: keep } = config.memory
  const opened = openRecall({ folder: paths.folder, now: Date.now, log, redact: redactor.text, max, keep })
  if (opened.ok) return opened.recall
  throw new FailureError('error', opened.message)
}

/** True when the system prompt has more parts than soul.md, summary and pins. */
function isComposed({ config }: Setup, { id, paths }: AgentProfile): boolean {
  return existsSync(paths.context) || (Object.hasOwn(config.agents, id) && config.agents[id]?.soul !== undefined)
}
