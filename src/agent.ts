/** The library: `import { createAgent } from 'braidclaw'`. The same host as on the command line, without a terminal. */

import type { Conversation, ConversationChoice, Host } from './host/api.ts'
import { silentContext } from './host/library.ts'
import { openHost } from './host/open-host.ts'
import { setUp } from './host/setup/setup.ts'
import { once } from './kit/once.ts'
import { type ModelCall, modelCallProvider } from './providers/model-call.ts'
import { withUsableReplies } from './providers/usable-reply.ts'
import type { AgentEvent, Ending, Mode, Proposal } from './runtime/event.ts'
import type { Provider } from './runtime/port.ts'

export type { ModelCall } from './providers/model-call.ts'
export type { AgentEvent, Ending, Proposal } from './runtime/event.ts'
export type { ChatRequest, ChatResponse, Message, ModelChunk, Provider, ProviderFailure } from './runtime/port.ts'

export type AgentOptions = {
  /** The workspace; default: the current folder. */
  readonly cwd?: string
  /** Where memory and receipts are kept; default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** Instead of the process's own; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** How much may happen without asking. */
  readonly permissionMode?: 'readonly' | 'supervised' | 'full'
  readonly maxTurns?: number
  /** A model of your own, in place of a configured one. */
  readonly provider?: Provider
  /** The same, as a bare function. */
  readonly modelCall?: ModelCall
  /** `new` (default), `latest`, or the id of a conversation to go on with. */
  readonly conversation?: string
  /** Log lines, redacted; default: none. */
  readonly log?: (line: string) => void
}

export type BraidClaw = {
  /**
   * One turn. Yields events until `done`; breaking out of the loop cancels it. Calls that need a yes come as `approval_gate`: answer with
   * `approve`, or they expire after ten minutes.
   * @throws Error when the configuration, workspace or memory cannot be used; the message says what to do
   */
  run(prompt: string): AsyncGenerator<AgentEvent>
  /**
   * @param gateId the one of the event: RUN/CALL, as `braidclaw approvals` shows it
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it
   */
  approve(gateId: string, decision: { readonly allow: boolean; readonly by?: string; readonly note?: string }): Promise<string | undefined>
  /** What an open gate asks about. */
  gate(gateId: string): Proposal | undefined
  cancel(): void
  setMode(change: { readonly newMode: Mode; readonly maxIterations?: number }): Promise<string | undefined>
  /** How the latest run ended. */
  ending(): Ending | undefined
  conversationId(): string | undefined
  close(): Promise<void>
}

/** Nothing is opened before the first run. Agents of one home share a host; those of equal settings share provider, policy and sandbox too. */
export function createAgent(options: AgentOptions = {}): BraidClaw {
  const opened = once(() => open(options))
  const conversation = () => opened.made()?.conversation

  async function* run(prompt: string): AsyncGenerator<AgentEvent> {
    yield* (await opened.get()).conversation.run(prompt)
  }

  return {
    run,
    // Before the first run there is no gate to answer.
    approve: async (gateId, { allow, by = 'program', note }) => {
      const talk = conversation()
      return talk ? await talk.approve(gateId, { allow, by, ...(note ? { note } : {}) }) : 'approval'
    },
    gate: (gateId) => conversation()?.gate(gateId),
    cancel: () => conversation()?.cancel('program'),
    setMode: async (change) => {
      const talk = conversation()
      return talk ? await talk.setMode(change) : 'modes'
    },
    ending: () => conversation()?.ending(),
    conversationId: () => conversation()?.id,
    close: async () => await (await opened.settled())?.host.close(),
  }
}

type Opened = { readonly host: Host; readonly conversation: Conversation }

async function open(options: AgentOptions): Promise<Opened> {
  const { cwd = process.cwd(), model, permissionMode, maxTurns, conversation = 'new', ...around } = options
  const setup = setUp({ ...silentContext(around), cwd }, { workspace: cwd, model, autonomy: permissionMode, maxTurns })
  const provider = providerOf(options)
  const host = openHost(setup, { ahead: provider === undefined })
  try {
    const opened = await host.conversation(choiceOf(conversation), { channel: 'library', ...(provider ? { provider } : {}) })
    return { host, conversation: opened }
  } catch (error) {
    await host.close()
    throw error
  }
}

function providerOf({ provider, modelCall }: AgentOptions): Provider | undefined {
  const given = provider ?? (modelCall ? modelCallProvider(modelCall) : undefined)
  return given && withUsableReplies(given)
}

function choiceOf(conversation: string): ConversationChoice {
  return conversation === 'new' || conversation === 'latest' ? { kind: conversation } : { kind: 'resume', id: conversation }
}
