/** `createAgent`: a conversation you can run, approve, cancel. Everything it touches is passed in. */

import type { AnyThread } from '../kernel/thread.ts'
import { createId } from '../kit/id.ts'
import { createRun, type Run, type RunPorts } from './driver.ts'
import type { AgentEvent, Ending, Mode, Proposal, RunEvent, Usage } from './event.ts'
import type { ChatRequest, Decision, Message, RunIdentity } from './port.ts'
import { program, type RunLimits } from './program.ts'
import type { JournalledInstruction, RunStart } from './replay/journal-reader.ts'
import type { JournalledRules } from './rules/journalled-rules.ts'
import { prepareThread, prepareThreads } from './threads/prepare-thread.ts'
import type { AnyUserThread } from './threads/thread.ts'
import { ThreadFailure } from './threads/thread-failure.ts'

/** What stands before the prompt of a run: none of it changes while the run lasts. */
export type Opening = Pick<ChatRequest, 'systemPrompt' | 'tools'> & {
  readonly history: readonly Message[]
  /** What of the project's own files stands in the system prompt, for the journal. */
  readonly instructions?: readonly JournalledInstruction[]
}

export type AgentConfig = {
  readonly ports: RunPorts & { readonly random: (bytes: number) => Uint8Array }
  readonly model: string
  /** The conversation so far, the system prompt and the tools, asked afresh before each run. */
  readonly opening: () => Opening | Promise<Opening>
  readonly limits: RunLimits
  readonly approvalTtlMs: number
  readonly conversationId: string
  readonly channel: string
  /** Where the conversation was begun. */
  readonly folder?: string
  /** See RunIdentity. */
  readonly sandbox?: 'none'
  /** More b-threads, beside the program's own. They can only veto. */
  readonly rules?: readonly AnyThread<RunEvent>[]
  /** The developer's own. */
  readonly threads?: readonly AnyUserThread[]
  /** The same rules as data, for the journal: a replay obeys what the run obeyed. */
  readonly journalledRules?: JournalledRules
}

export type Agent = {
  readonly conversationId: string
  /**
   * One turn. Yields until `done`; breaking out of the loop cancels it, and so does `signal`. One run at a time: a second one yields the error
   * `busy` and ends, one after `close` the error `closed`.
   */
  run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent>
  /**
   * For this run, if one is under way, and all later ones. Without a run it counts from the next one on.
   * @returns undefined when it takes part and that is on disk, else why it does not
   */
  addThread(thread: AnyUserThread): Promise<string | undefined>
  /** Cancels the current run and waits until it is on disk, at most so long: then what still runs is left to itself. No run begins any more. */
  close(graceMs: number): Promise<void>
  /**
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it (late, unknown, used, of
   * another run)
   */
  approve(gateId: string, decision: Decision): Promise<string | undefined>
  /** What an open gate asks about: the call and what the gate said of it. */
  gate(gateId: string): Proposal | undefined
  /** Ends the current run: nothing new begins, what runs is aborted. Without a run it does nothing. */
  cancel(by?: string): void
  /** The emergency stop reached this process. */
  stop(reason: string): void
  /** @returns undefined when the mode is set, else the rule that rejected it. Wiggum mode is rejected by `modes` in this version. */
  setMode(change: { readonly newMode: Mode; readonly maxIterations?: number }): Promise<string | undefined>
  /** How the latest run ended, for exit codes; undefined while it runs. */
  ending(): Ending | undefined
  runId(): string | undefined
  /** What the model calls of the latest run used so far. */
  usage(): Usage | undefined
}

/** @throws ThreadFailure when a thread of the developer's is not fit to take part */
export function createAgent(config: AgentConfig): Agent {
  const { ports, model, limits, conversationId, channel, folder } = config
  const state: { run?: Run; identity?: RunIdentity; mode: Mode; opening?: Promise<Opening> | undefined; closed: boolean } = {
    mode: 'structured',
    closed: false,
  }
  let joining = prepareThreads(config.threads ?? [])

  async function* run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
    const refusal = refusalNow()
    if (refusal) return yield* refusal
    const opening = await open()
    if (state.closed) return yield* refusals.closed
    const { current, start } = begin(prompt, opening)
    yield* current.events(start, signal)
  }

  function refusalNow(): readonly AgentEvent[] | undefined {
    if (state.closed) return refusals.closed
    return state.opening || (state.run && !state.run.ending()) ? refusals.busy : undefined
  }

  async function open(): Promise<Opening> {
    try {
      state.opening = Promise.resolve(config.opening())
      return await state.opening
    } finally {
      state.opening = undefined
    }
  }

  function begin(prompt: string, { history, systemPrompt, tools, instructions = [] }: Opening): { current: Run; start: RunStart } {
    const identity = identify()
    const current = createRun({
      identity,
      threads: [...program(limits), ...(config.rules ?? [])],
      joining,
      ports,
      request: { systemPrompt, tools, model },
      history,
      approvalTtlMs: config.approvalTtlMs,
      maxMs: limits.maxMs ?? 0,
    })
    state.run = current
    state.identity = identity
    return { current, start: { ...startOf(prompt), ...(instructions.length > 0 ? { instructions } : {}) } }
  }

  async function addThread(given: AnyUserThread): Promise<string | undefined> {
    try {
      const thread = prepareThread(given)
      if (joining.some(({ name }) => name === thread.name)) return `thread "${thread.name}" is there already; give this one another name`
      joining = [...joining, thread]
      const rejected = await state.run?.add(thread)
      // Over before it could join: it takes part from the next run on.
      if (rejected === undefined || rejected === 'finisher') return undefined
      joining = joining.filter((other) => other !== thread)
      return `thread "${thread.name}" was rejected by ${rejected}`
    } catch (error) {
      if (error instanceof ThreadFailure) return error.message
      throw error
    }
  }

  async function close(graceMs: number): Promise<void> {
    state.closed = true
    await state.opening?.catch(() => undefined)
    const { run } = state
    if (!run || run.ending()) return
    void run.send({ type: 'cancel', by: 'close' })
    const late = Promise.withResolvers<void>()
    const takeBack = ports.after(graceMs, () => late.resolve())
    await Promise.race([run.over, late.promise])
    takeBack()
    run.abandon('the conversation was closed before its tools had ended')
  }

  /** With the limits and rules that hold now, so that a replay needs no configuration. */
  function startOf(prompt: string): RunStart {
    const { journalledRules } = config
    const now = { at: ports.now(), mode: state.mode, model, limits, ...(journalledRules ? { rules: journalledRules } : {}) }
    return { type: 'run.start', prompt, ...now }
  }

  function identify(): RunIdentity {
    const [runId, turnId] = [createId('run', ports.random(12)), createId('turn', ports.random(12))]
    const optional = { ...(folder ? { folder } : {}), ...(config.sandbox ? { sandbox: config.sandbox } : {}) }
    return { runId, turnId, conversationId, provider: ports.provider.name, model, channel, ...optional }
  }

  return {
    conversationId,
    run,
    addThread,
    close,
    approve: async (gateId, decision) => (state.run ? await state.run.approve(gateId, decision) : 'approval'),
    gate: (gateId) => state.run?.gate(gateId),
    cancel: (by = 'user') => void state.run?.send({ type: 'cancel', by }),
    stop: (reason) => void state.run?.send({ type: 'estop', reason }),
    setMode: async ({ newMode, maxIterations }) => {
      if (newMode === 'wiggum') return 'modes'
      state.mode = newMode
      return await state.run?.send({ type: 'mode.set', mode: newMode, ...(maxIterations ? { maxIterations } : {}) })
    },
    ending: () => state.run?.ending(),
    runId: () => state.identity?.runId,
    usage: () => state.run?.usage(),
  }
}

const refused = (code: string, message: string): readonly AgentEvent[] => [
  { type: 'error', code, message, recoverable: code === 'busy' },
  { type: 'done', stopReason: 'error' },
]

const refusals = {
  busy: refused('busy', 'a run is under way in this conversation; wait for its end or cancel it'),
  closed: refused('closed', 'this conversation is closed; open it again to go on'),
}
