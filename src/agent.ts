/** Exports the library: `import { createAgent } from 'braidclaw'`. It runs the same host as the command line, without a terminal. */

import { channelRows } from './channels/list.ts'
import type { Conversation, ConversationChoice, Host, ReplayedRun } from './host/api.ts'
import { asValue, type Failure, setUpFor, silentContext } from './host/open/library.ts'
import { openHost } from './host/open/open-host.ts'
import { loadSetup } from './host/setup/setup.ts'
import { lazy } from './kit/lazy.ts'
import { type ModelCall, modelCallProvider } from './providers/model-call.ts'
import { withUsableReplies } from './providers/usable-reply.ts'
import type { ChangeSet } from './runtime/changes.ts'
import type { AgentEvent, Ending, Mode, Proposal } from './runtime/event.ts'
import type { Provider } from './runtime/port.ts'
import { type PreparedThread, prepareThread, prepareThreads } from './runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from './runtime/threads/thread.ts'
import { ThreadFailure } from './runtime/threads/thread-failure.ts'
import type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-program.ts'

export type { ModelCall } from './providers/model-call.ts'
export type { Change, ChangeReview, ChangeSet, EntryState } from './runtime/changes.ts'
export type { AgentEvent, Ending, Proposal } from './runtime/event.ts'
export type { ChatRequest, ChatResponse, Message, ModelChunk, Provider, ProviderFailure } from './runtime/port.ts'
export type { Thread, ThreadBid, ThreadEvent, ThreadPattern } from './runtime/threads/thread.ts'
export { type JudgedCall, veto } from './runtime/threads/thread.ts'
export type { AgentReport, VerifyAgentOptions } from './runtime/verify/verify-program.ts'

export type AgentOptions = {
  /** The workspace; default: the current folder. */
  readonly cwd?: string
  /** The folder for memory and receipts; default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** Replaces the environment of the process; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** How much the agent may do without asking. */
  readonly permissionMode?: 'readonly' | 'supervised' | 'full'
  readonly maxTurns?: number
  /** A custom provider; replaces the configured one. */
  readonly provider?: Provider
  /** A custom provider as a plain function. */
  readonly modelCall?: ModelCall
  /** Custom b-threads: they can block actions of a run and request calls, but they cannot permit anything. */
  readonly threads?: readonly AnyUserThread[]
  /** `new` (default), `latest`, or the id of a conversation to continue. */
  readonly conversation?: string
  /** Receives log lines, redacted; default: no log. */
  readonly log?: (line: string) => void
}

export type AskedChanges = ChangeSet & { readonly patch: string }

export type BraidClaw = {
  /**
   * Runs one turn. It yields events until `done`; breaking out of the loop, or aborting `signal`, cancels the turn. A call that needs
   * approval arrives as `approval_gate`: answer with `approve`, or the question expires after ten minutes. A second turn during a running
   * one yields the error `busy` and ends; a turn after `close` does the same with `closed`.
   * @throws Error when the configuration, workspace or memory cannot be used; the message says what to do
   */
  run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent>
  /**
   * Adds a thread later: it takes part in the running turn from now on, and in all later turns.
   * @returns undefined when the thread takes part and the record has it on disk, else the reason
   */
  addThread(thread: AnyUserThread): Promise<string | undefined>
  /**
   * @param gateId the `gateId` of the event: RUN/CALL, as `braidclaw approvals` shows it
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it
   */
  approve(
    gateId: string,
    decision: { readonly allow: boolean; readonly by?: string; readonly note?: string; readonly part?: string },
  ): Promise<string | undefined>
  /**
   * Returns what an open gate asks to change in the workspace, and the same as a patch for `git apply`; undefined when it is about something
   * else than files. With `revise` a program can accept a part: pass the returned `part` to `approve`.
   */
  changes(gateId: string): Promise<AskedChanges | undefined>
  /** Returns the proposal that an open gate asks about. */
  gate(gateId: string): Proposal | undefined
  /** Cancels the running turn, also one that has only just begun. */
  cancel(): void
  setMode(change: { readonly newMode: Mode; readonly maxIterations?: number }): Promise<string | undefined>
  /** How the latest run ended. */
  ending(): Ending | undefined
  conversationId(): string | undefined
  /** The id of the latest turn; `replay` takes it. */
  runId(): string | undefined
  /**
   * Cancels the running turn, waits until the cancellation is on disk (at most three seconds) and frees everything. No turn can begin
   * afterwards.
   */
  close(): Promise<void>
}

/**
 * Creates an agent. It opens nothing before the first run. Agents of one home share a host; agents with equal settings also share provider,
 * policy and sandbox.
 * @throws Error when a thread is not valid; the message says why
 */
export function createAgent(options: AgentOptions = {}): BraidClaw {
  const state = { threads: prepareThreads(options.threads ?? []), closed: false }
  const opened = lazy(() => open(options, state.threads))
  const conversation = () => opened.current()?.conversation
  const stops = new Set<AbortController>()

  async function* run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
    if (state.closed) return yield* closed
    const stop = new AbortController()
    stops.add(stop)
    try {
      const current = (await opened.get()).conversation
      yield* current.run(prompt, signal ? AbortSignal.any([signal, stop.signal]) : stop.signal)
    } finally {
      stops.delete(stop)
    }
  }

  async function addThread(given: AnyUserThread): Promise<string | undefined> {
    const current = (await opened.settled())?.conversation
    try {
      const thread = prepareThread(given)
      if (current) return await current.addThread(thread)
      if (state.threads.some(({ name }) => name === thread.name))
        return `thread "${thread.name}" is there already; give this one another name`
      state.threads.push(thread)
    } catch (error) {
      if (error instanceof ThreadFailure) return error.message
      throw error
    }
  }

  return {
    run,
    addThread,
    // Before the first run no gate can be open.
    approve: async (gateId, { allow, by = 'program', note, part }) => {
      const current = conversation()
      return current ? await current.approve(gateId, { allow, by, ...(note ? { note } : {}), ...(part ? { part } : {}) }) : 'approval'
    },
    changes: async (gateId) => {
      const set = await conversation()?.changesOf(gateId)
      if (!set) return undefined
      const { patchText } = await import('./host/changes/patch-text.ts')
      return { ...set, patch: patchText(set) }
    },
    gate: (gateId) => conversation()?.gate(gateId),
    cancel() {
      for (const stop of stops) stop.abort()
    },
    setMode: async (change) => {
      const current = conversation()
      return current ? await current.setMode(change) : 'modes'
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
  { type: 'error', code: 'closed', message: 'this agent is closed; create another one', recoverable: false },
  { type: 'done', stopReason: 'error' },
]

type Opened = { readonly host: Host; readonly conversation: Conversation }

async function open(options: AgentOptions, threads: readonly PreparedThread[]): Promise<Opened> {
  const { cwd = process.cwd(), model, permissionMode, maxTurns, conversation = 'new', threads: _, ...around } = options
  const setup = loadSetup(
    { ...silentContext({ ...around, channels: channelRows }), cwd },
    { workspace: cwd, model, autonomy: permissionMode, maxTurns },
  )
  const provider = providerOf(options)
  const host = await openHost(setup, { ahead: provider === undefined })
  try {
    const opened = await host.conversation(choiceOf(conversation), { channel: 'library', threads, provider })
    return { host, conversation: opened }
  } catch (error) {
    await host.close()
    throw error
  }
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
      prepareThreads(threads)
      const host = await openHost(setUpFor({ ...around, channels: channelRows }, {}), { ahead: false })
      try {
        return { ok: true, ...(await host.replay(runId, threads)) }
      } finally {
        await host.close()
      }
    },
    (failure) => ({ ok: false, ...failure }),
  )
}
