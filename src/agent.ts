/** The library: `import { createAgent } from 'braidclaw'`. The same animal as on the command line, without a terminal. */

import { channelKinds } from './channels/list.ts'
import type { Wish } from './host/api.ts'
import { silentContext } from './host/library.ts'
import { wake } from './host/run/conversation.ts'
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

/** Nothing is opened before the first run. */
export function createAgent(options: AgentOptions = {}): BraidClaw {
  const animal = once(() => wakeUp(options))
  const agent = () => animal.made()?.agent

  async function* run(prompt: string): AsyncGenerator<AgentEvent> {
    yield* (await animal.get()).agent.run(prompt)
  }

  return {
    run,
    // Before the first run there is no gate to answer.
    approve: async (gateId, { allow, by = 'program', note }) => {
      const awake = agent()
      return awake ? await awake.approve(gateId, { allow, by, ...(note ? { note } : {}) }) : 'approval'
    },
    gate: (gateId) => agent()?.gate(gateId),
    cancel: () => agent()?.cancel('program'),
    setMode: async (change) => {
      const awake = agent()
      return awake ? await awake.setMode(change) : 'modes'
    },
    ending: () => agent()?.ending(),
    conversationId: () => agent()?.conversationId,
    close: async () => (await animal.settled())?.close(),
  }
}

async function wakeUp({
  cwd = process.cwd(),
  model,
  permissionMode,
  maxTurns,
  provider,
  modelCall,
  conversation = 'new',
  ...around
}: AgentOptions) {
  const setup = setUp(
    { ...silentContext({ ...around, channels: channelKinds }), cwd },
    { workspace: cwd, model, autonomy: permissionMode, maxTurns },
  )
  const given = provider ?? (modelCall ? modelCallProvider(modelCall) : undefined)
  return wake(setup, { channel: 'library', conversation: kindOf(conversation), ...(given ? { provider: withUsableReplies(given) } : {}) })
}

function kindOf(conversation: string): Wish['conversation'] {
  return conversation === 'new' || conversation === 'latest' ? { kind: conversation } : { kind: 'resume', id: conversation }
}
