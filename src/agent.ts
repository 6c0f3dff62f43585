/** The library: `import { createAgent } from 'braidclaw'`. The same host as on the command line, without a terminal. */

import { channelRows } from './channels/list.ts'
import type { Conversation, ConversationChoice, Host, ReplayedRun } from './host/api.ts'
import { asValue, type Failure, setUpFor, silentContext } from './host/library.ts'
import { openHost } from './host/open-host.ts'
import { loadSetup } from './host/setup/setup.ts'
import { once } from './kit/once.ts'
import { type ModelCall, modelCallProvider } from './providers/model-call.ts'
import { withUsableReplies } from './providers/usable-reply.ts'
import type { AgentEvent, Ending, Mode, Proposal } from './runtime/event.ts'
import type { Provider } from './runtime/port.ts'
import { prepareThreads } from './runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from './runtime/threads/thread.ts'
import { ThreadFailure } from './runtime/threads/thread-failure.ts'
import type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-agent.ts'

export type { ModelCall } from './providers/model-call.ts'
export type { AgentEvent, Ending, Proposal } from './runtime/event.ts'
export type { ChatRequest, ChatResponse, Message, ModelChunk, Provider, ProviderFailure } from './runtime/port.ts'
export type { Thread, ThreadBid, ThreadEvent, ThreadPattern } from './runtime/threads/thread.ts'
export { type JudgedCall, veto } from './runtime/threads/veto.ts'
export type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-agent.ts'

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
  /** B-threads of your own: they can take away from what a run may do and ask for calls, and permit nothing. */
  readonly threads?: readonly AnyUserThread[]
  /** `new` (default), `latest`, or the id of a conversation to go on with. */
  readonly conversation?: string
  /** Log lines, redacted; default: none. */
  readonly log?: (line: string) => void
}

export type BraidClaw = {
  /**
   * One turn. Yields events until `done`; breaking out of the loop, or aborting `signal`, cancels it. Calls that need a yes come as
   * `approval_gate`: answer with `approve`, or they expire after ten minutes. A second turn while one is under way yields the error `busy` and
   * ends, as one after `close` does with `closed`.
   * @throws Error when the configuration, workspace or memory cannot be used; the message says what to do
   */
  run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent>
  /**
   * A thread that comes later: it takes part in the turn under way from now on, and in all that follow.
   * @returns undefined when it does and that is on disk, else why not
   */
  addThread(thread: AnyUserThread): Promise<string | undefined>
  /**
   * @param gateId the one of the event: RUN/CALL, as `braidclaw approvals` shows it
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it
   */
  approve(gateId: string, decision: { readonly allow: boolean; readonly by?: string; readonly note?: string }): Promise<string | undefined>
  /** What an open gate asks about. */
  gate(gateId: string): Proposal | undefined
  /** Of a turn that has only just begun, too. */
  cancel(): void
  setMode(change: { readonly newMode: Mode; readonly maxIterations?: number }): Promise<string | undefined>
  /** How the latest run ended. */
  ending(): Ending | undefined
  conversationId(): string | undefined
  /** Of the latest turn; for `replay`. */
  runId(): string | undefined
  /** Cancels the turn under way, waits until that is on disk (at most three seconds) and frees everything. No turn begins any more. */
  close(): Promise<void>
}

/**
 * Nothing is opened before the first run. Agents of one home share a host; those of equal settings share provider, policy and sandbox too.
 * @throws Error when a thread is not fit to take part; the message says why
 */
export function createAgent(options: AgentOptions = {}): BraidClaw {
  const state = { threads: [...(options.threads ?? [])], closed: false }
  prepareThreads(state.threads)
  const opened = once(() => open({ ...options, threads: state.threads }))
  const conversation = () => opened.made()?.conversation
  const stops = new Set<AbortController>()

  async function* run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
    if (state.closed) return yield* closed
    const stop = new AbortController()
    stops.add(stop)
    try {
      const talk = (await opened.get()).conversation
      yield* talk.run(prompt, signal ? AbortSignal.any([signal, stop.signal]) : stop.signal)
    } finally {
      stops.delete(stop)
    }
  }

  async function addThread(thread: AnyUserThread): Promise<string | undefined> {
    const talk = (await opened.settled())?.conversation
    if (talk) return talk.addThread(thread)
    try {
      prepareThreads([...state.threads, thread])
      state.threads.push(thread)
    } catch (error) {
      if (error instanceof ThreadFailure) return error.message
      throw error
    }
  }

  return {
    run,
    addThread,
    // Before the first run there is no gate to answer.
    approve: async (gateId, { allow, by = 'program', note }) => {
      const talk = conversation()
      return talk ? await talk.approve(gateId, { allow, by, ...(note ? { note } : {}) }) : 'approval'
    },
    gate: (gateId) => conversation()?.gate(gateId),
    cancel() {
      for (const stop of stops) stop.abort()
    },
    setMode: async (change) => {
      const talk = conversation()
      return talk ? await talk.setMode(change) : 'modes'
    },
    ending: () => conversation()?.ending(),
    conversationId: () => conversation()?.id,
    runId: () => conversation()?.runId(),
    async close() {
      state.closed = true
      await (await opened.settled())?.host.close()
    },
  }
}

const closed: readonly AgentEvent[] = [
  { type: 'error', code: 'closed', message: 'this agent is closed; create another one to go on', recoverable: false },
  { type: 'done', stopReason: 'error' },
]

type Opened = { readonly host: Host; readonly conversation: Conversation }

async function open(options: AgentOptions): Promise<Opened> {
  const { cwd = process.cwd(), model, permissionMode, maxTurns, conversation = 'new', threads = [], ...around } = options
  const setup = loadSetup(
    { ...silentContext({ ...around, channels: channelRows }), cwd },
    { workspace: cwd, model, autonomy: permissionMode, maxTurns },
  )
  const provider = providerOf(options)
  const host = openHost(setup, { ahead: provider === undefined })
  try {
    const opened = await host.conversation(choiceOf(conversation), { channel: 'library', threads, ...(provider ? { provider } : {}) })
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

/** The model checker over the agent program with these threads in it; nothing is run, and no home is opened. @throws Error when a thread fails */
export async function verifyAgent(options: VerifyAgentOptions): Promise<AgentReport> {
  return (await import('./runtime/verify/verify-agent.ts')).verifyAgent(options)
}

export type ReplayOptions = Pick<AgentOptions, 'home' | 'env' | 'log' | 'threads'> & {
  /** As `run list` shows it, the beginning of it, or `last`. */
  readonly runId: string
}

export type Replayed = ({ readonly ok: true } & ReplayedRun) | ({ readonly ok: false } & Failure)

/** A past run again from its journal, with the threads that it had; nothing is executed, asked or fetched. @throws Error when a thread is not fit to take part */
export function replay({ runId, threads = [], ...around }: ReplayOptions): Promise<Replayed> {
  return asValue<Replayed>(
    async () => {
      prepareThreads(threads)
      const host = openHost(setUpFor({ ...around, channels: channelRows }, {}), { ahead: false })
      try {
        return { ok: true, ...(await host.replay(runId, threads)) }
      } finally {
        await host.close()
      }
    },
    (failure) => ({ ok: false, ...failure }),
  )
}
