/** Creates an agent: a conversation that the caller can run, approve and cancel. The caller passes in every effect. */

import type { AnyThread } from '../kernel/thread.ts'
import { createId, sha256 } from '../kit/sha256.ts'
import { createRun, type Run, type RunPorts } from './driver.ts'
import type { AgentEvent, ContextUse, Continued, Ending, Label, Mode, PictureRef, Proposal, RunEvent, Usage, Wiggum } from './event.ts'
import { picturesIn } from './outcome.ts'
import type { ChatRequest, CheckPort, Decision, Message, Meter, Question, RunIdentity } from './port.ts'
import { program, type RunLimits } from './program.ts'
import type { JournalledInstruction, RunStart } from './replay/journal-reader.ts'
import { judgeFor } from './request/think.ts'
import type { JournalledRules } from './rules/rule-thread.ts'
import type { PreparedThread } from './threads/prepare-thread.ts'
import { ThreadFailure } from './threads/thread-failure.ts'

/** The part of a request before the prompt; it does not change during the run. */
export type RunContext = Pick<ChatRequest, 'systemPrompt' | 'tools'> & {
  readonly history: readonly Message[]
  /** How many messages at its end belong to the turn that continues. */
  readonly openMessages?: number
  /** The kinds of data that the conversation has read, and whether others wrote the prompt; see `egress`. */
  readonly labels?: readonly Label[]
  /** The project's instruction files that are part of the system prompt, for the journal. */
  readonly instructions?: readonly JournalledInstruction[]
}

export type AgentConfig = Omit<RunIdentity, 'runId' | 'turnId' | 'provider'> & {
  readonly ports: RunPorts & { readonly random: (bytes: number) => Uint8Array; readonly meter?: (runId: string) => Meter | undefined }
  /** Called before each run. With `continues` the history ends with that interrupted run, without results of its `proposals`. */
  readonly opening: (continues?: Continued, allowedTools?: readonly string[]) => RunContext | Promise<RunContext>
  readonly limits: RunLimits
  readonly approvalTtlMs: number
  /** More b-threads in addition to the program's own. They can only block. */
  readonly rules?: readonly AnyThread<RunEvent>[]
  /** The developer's own threads. */
  readonly threads?: readonly PreparedThread[]
  /** The checks that end wiggum runs; without any, wiggum mode is rejected. */
  readonly checks?: CheckPort
  /** The version of the program, for the journal. */
  readonly version?: string | undefined
  /** The same rules as data, for the journal, so that a replay applies the rules of the run. */
  readonly journalledRules?: JournalledRules
}

/**
 * `maxIterations`, also called `maxIter`: 100 if absent. `maxSame`: the run ends when the same check failed in the same way on the same files
 * this many times in a row, 3 if absent. `until`: it ends then, in milliseconds since 1970.
 */
export type ModeChange = Partial<Omit<Wiggum, 'checks'>> & { readonly newMode: Mode; readonly maxIter?: number }

export type Agent = {
  readonly conversationId: string
  /**
   * Runs one turn and yields until `done`; breaking out of the loop cancels it. One run at a time. With `continues` it continues that
   * run: its `proposals` are judged again and made before the model is asked. `allowedTools` is for `opening` and the journal; the
   * `pictures` belong to the prompt. @throws if a run is under way, or a wiggum run is to continue
   * without checks
   */
  run(prompt: string, continues?: Continued, allowedTools?: readonly string[], pictures?: readonly PictureRef[]): AsyncGenerator<AgentEvent>
  /**
   * Adds a thread to the current run, if any, and to all later runs.
   * @returns undefined when the thread takes part and the journal has that on disk, else why it does not
   */
  addThread(thread: PreparedThread): Promise<string | undefined>
  /**
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it (late, unknown, used, of
   * another run)
   */
  approve(gateId: string, decision: Decision): Promise<string | undefined>
  /** Returns the call that an open gate asks about, with the judgement of it or of its changes. */
  gate(gateId: string): Question | undefined
  /** Resolves when that gate is no longer open, at once if it is not. */
  gateClosed(gateId: string): Promise<void>
  /** Resolves when no run is under way, even if nobody reads its events. */
  settled(): Promise<void>
  /**
   * Adds a person's message to the current run. Resolves with true when a request to the model has it, and with false when the run has
   * ended without one, or when there is none: the message can then begin the next turn.
   */
  steer(text: string): Promise<boolean>
  /** Ends the current run: nothing new starts, and running effects are aborted. Without a run it does nothing. */
  cancel(by?: string): void
  /** Reports that the emergency stop was set. */
  stop(reason: string): void
  /**
   * Sets the mode of the runs from now on. A run under way keeps its mode; the same mode with another `maxIterations` changes its limit.
   * @returns undefined when the mode is set, else `modes: ` and why it was rejected
   */
  setMode(change: ModeChange): Promise<string | undefined>
  /** Returns how the latest run ended, for exit codes; undefined during a run. */
  ending(): Ending | undefined
  runId(): string | undefined
  /** Returns what the model calls of the latest run have used so far. */
  usage(): Usage | undefined
  /** Returns how much of the model's window the latest run uses, and how often it was trimmed. */
  context(): ContextUse | undefined
}

type FinishedRun = { readonly ending: Ending | undefined; readonly usage: Usage | undefined; readonly context: ContextUse }

export function createAgent(config: AgentConfig): Agent {
  const { ports, model, limits, conversationId, channel, folder } = config
  const structured: ModeChange = { newMode: 'structured' }
  const state: { run?: Run | undefined; ended?: FinishedRun; identity?: RunIdentity; mode: ModeChange } = { mode: structured }
  let joining = config.threads ?? []

  const run: Agent['run'] = async function* (prompt, continues, allowedTools = continues?.allowedTools, pictures = []) {
    if (state.run && !state.run.ending()) throw new Error('a run is under way in this conversation; wait for it or cancel it')
    const wiggum = wiggumOf(continues ?? {})
    const identity = identify()
    const { history, openMessages = 0, systemPrompt, tools, labels = [], instructions = [] } = await config.opening(continues, allowedTools)
    const continuation = continues && {
      continues: { ...continues, proposals: (await Promise.all(continues.proposals.map(judgeAgain))).flat() },
    }
    const meter = ports.meter?.(identity.runId)
    const current = createRun({
      identity,
      threads: [...program(limits), ...(config.rules ?? [])],
      joining,
      ports: config.checks ? { ...ports, checks: config.checks } : ports,
      request: { systemPrompt, tools, model, meter },
      history,
      openMessages,
      approvalTtlMs: config.approvalTtlMs,
      maxMs: limits.maxMs ?? 0,
    })
    state.run = current
    state.identity = identity
    void current.settled.then(() => keepEnd(current))
    const made = { version: config.version, tools: sha256(JSON.stringify(tools)) }
    yield* current.events({
      ...startOf(prompt, labels, wiggum),
      ...made,
      ...(instructions.length > 0 ? { instructions } : {}),
      ...(allowedTools ? { allowedTools } : {}),
      ...picturesIn({ pictures }),
      ...continuation,
    })
  }

  /** Keeps a refusal, because its reason, such as a secret in the arguments, may be gone from the record. */
  async function judgeAgain(proposal: Proposal): Promise<readonly Proposal[]> {
    if (proposal.judgement.verdict === 'deny') return [proposal]
    return (await judgeFor({ by: '', call: proposal.call, judge: ports.judge, redact: ports.redact, usedIds: new Set() })).proposals
  }

  async function addThread(thread: PreparedThread): Promise<string | undefined> {
    try {
      if (joining.some(({ name }) => name === thread.name)) return `thread "${thread.name}" is there already; give this one another name`
      joining = [...joining, thread]
      const rejected = await state.run?.add(thread)
      // The run ended before the thread could join; the thread takes part from the next run on.
      if (rejected === undefined || rejected === 'finisher') return undefined
      joining = joining.filter((other) => other !== thread)
      return `thread "${thread.name}" was rejected by ${rejected}`
    } catch (error) {
      if (error instanceof ThreadFailure) return error.message
      throw error
    }
  }

  /** Keeps only ending and usage of a finished run, so that an idle conversation holds no messages, threads or gates in memory. */
  function keepEnd(over: Run): void {
    state.ended = { ending: over.ending(), usage: over.usage(), context: over.context() }
    state.run = undefined
  }

  /** Includes the current limits and rules, so that a replay needs no configuration. */
  function startOf(prompt: string, labels: readonly Label[], wiggum: Wiggum | undefined): RunStart {
    const { journalledRules } = config
    const mode = wiggum ? ({ mode: 'wiggum', wiggum } as const) : ({ mode: 'structured' } as const)
    const now = { at: ports.now(), ...mode, model, limits, ...(journalledRules ? { rules: journalledRules } : {}) }
    return { type: 'run.start', prompt, ...now, ...(labels.length > 0 ? { labels } : {}) }
  }

  /** A wiggum run continues as one, within its own limits unless `setMode` gave others. */
  function wiggumOf({ wiggum }: Pick<Continued, 'wiggum'>): Wiggum | undefined {
    const { newMode, ...asked } = state.mode
    if (newMode === 'structured' && wiggum === undefined) return undefined
    const reason = whyNoWiggum()
    if (reason !== undefined) throw new Error(reason)
    return { maxIterations: 100, maxSame: 3, ...wiggum?.limits, ...asked, checks: config.checks?.list ?? [] }
  }

  function whyNoWiggum(): string | undefined {
    if (!config.checks?.list.length) return 'modes: wiggum mode needs checks that end a run, and this conversation has none'
    return config.sandbox === 'none' ? 'modes: wiggum mode needs the sandbox, and this conversation runs commands without it' : undefined
  }

  async function setMode({ newMode, maxIter, maxIterations = maxIter, ...other }: ModeChange): Promise<string | undefined> {
    const limits = Object.entries({ maxIterations, ...other }).filter(([, value]) => value !== undefined)
    const wrong = limits.find(([, value]) => !(Number.isSafeInteger(value) && Number(value) > 0))
    if (wrong) return `modes: ${wrong[0]} is ${wrong[1]}; give a whole number from 1`
    const reason = newMode === 'wiggum' ? whyNoWiggum() : undefined
    if (reason !== undefined) return reason
    const rejected = await state.run?.send({ type: 'mode.set', mode: newMode, ...(maxIterations ? { maxIterations } : {}) })
    if (rejected !== undefined && rejected !== 'finisher') return `${rejected}: a run keeps its mode; set the mode when it has ended`
    state.mode = { newMode, ...Object.fromEntries(limits) }
  }

  function identify(): RunIdentity {
    const [runId, turnId] = [createId('run', ports.random(12)), createId('turn', ports.random(12))]
    const { sandbox, agent, token } = config
    return { runId, turnId, conversationId, provider: ports.provider.name, model, channel, folder, sandbox, agent, token }
  }

  return {
    conversationId,
    run,
    addThread,
    approve: async (gateId, decision) => (state.run ? await state.run.approve(gateId, decision) : 'approval'),
    gate: (gateId) => state.run?.gate(gateId),
    gateClosed: async (gateId) => await state.run?.gateClosed(gateId),
    settled: async () => await state.run?.settled,
    steer: async (text) => (await state.run?.steer(text)) ?? false,
    cancel: (by = 'user') => void state.run?.send({ type: 'cancel', by }),
    stop: (reason) => void state.run?.send({ type: 'estop', reason }),
    setMode,
    ending: () => (state.run ? state.run.ending() : state.ended?.ending),
    runId: () => state.identity?.runId,
    usage: () => (state.run ? state.run.usage() : state.ended?.usage),
    context: () => (state.run ? state.run.context() : state.ended?.context),
  }
}
