/** Drives one run: feeds external events to the kernel, performs the effects that it selects, and passes visible events to the consumer. */

import type { AnyThread } from '../kernel/thread.ts'
import { errorText } from '../kit/errors.ts'
import { createQueue } from '../kit/queue.ts'
import { askModel, createCarryOut, createGates } from './effects.ts'
import type { AgentEvent, ContextUse, Ending, ExternalEvent, InternalEvent, RunEvent, Usage } from './event.ts'
import type {
  Act,
  ChangePorts,
  ChatRequest,
  CheckPort,
  Clock,
  Committed,
  Judge,
  Log,
  Message,
  ModelWindow,
  Provider,
  Questions,
  Recorder,
  Redact,
  RedactStream,
  RunIdentity,
  SummariseTurn,
} from './port.ts'
import { contextAfter } from './project.ts'
import { createRunMessages } from './request/run-messages.ts'
import { judgeFor } from './request/think.ts'
import { createStepper, type SelectedEvent } from './super-step.ts'
import type { PreparedThread } from './threads/prepare-thread.ts'
import { addUsage } from './usage.ts'

/** Calls `then` once after `ms`; the returned function cancels the timer. */
export type After = (ms: number, then: () => void) => () => void

export type RunPorts = {
  readonly provider: Provider
  readonly judge: Judge
  readonly act: Act
  /** Needed when acts run on private views. */
  readonly changes?: ChangePorts
  readonly recorder: Recorder
  readonly questions: Questions
  /** The checks of a wiggum run. */
  readonly checks?: CheckPort
  readonly log: Log
  readonly now: Clock
  readonly after: After
  /** Removes secrets from all input, before any other part processes, stores or repeats it. */
  readonly redact: Redact
  readonly redactStream: RedactStream
  /** The window of the model; absent: requests have any length. */
  readonly window?: ModelWindow
  /** Called with each event that the journal does not have, as it is passed to the consumer. Must not throw. */
  readonly piece?: (run: RunIdentity, event: AgentEvent) => void
  /** Returns what summarises the middle of this run, at the run's cost. */
  readonly summarise?: (runId: string) => SummariseTurn
}

export type RunOptions = {
  readonly identity: RunIdentity
  readonly threads: readonly AnyThread<RunEvent>[]
  /** The developer's threads. */
  readonly joining: readonly PreparedThread[]
  readonly ports: RunPorts
  /** The chat request without its messages, which grow during the run. */
  readonly request: Omit<ChatRequest, 'messages'>
  readonly history: readonly Message[]
  /** See RunContext. */
  readonly openMessages: number
  readonly approvalTtlMs: number
  /** Wall-clock limit of the run; zero means none. */
  readonly maxMs: number
}

export type Run = ReturnType<typeof createRun>

/** An external event before the kernel takes it, and the callback that reports what became of it. */
type QueuedEvent = { readonly event: ExternalEvent; readonly answer: (rejectedBy: string | undefined) => void }

type Steer = {
  readonly event: Extract<ExternalEvent, { type: 'steer' }>
  readonly answer: (isInRequest: boolean) => void
  isOffered: boolean
}

const queueCapacity = 256
/** A timer of more milliseconds would fire at once. */
const longestTimer = 2 ** 31 - 1
const nothing: Committed = { receipts: new Map(), earlier: new Map(), unusable: new Map() }

export function createRun({ identity, threads, joining, ports, request, history, openMessages, approvalTtlMs, maxMs }: RunOptions) {
  const { recorder, questions, log } = ports
  const messages = createRunMessages({
    runId: identity.runId,
    history,
    openMessages,
    request,
    redact: ports.redact,
    window: ports.window,
    summarise: ports.summarise?.(identity.runId),
  })
  const queue = createQueue<AgentEvent>(queueCapacity)
  const inFlight = new Map<string, AbortController>()
  const gates = createGates({
    identity,
    questions,
    after: ports.after,
    ttlMs: approvalTtlMs,
    decide: (id, plan, { allow, by, note, part }) =>
      send({ type: 'approval.decision', id, allow, by, plan, ...(note ? { note } : {}), ...(part ? { part } : {}) }),
    fail: failRun,
  })
  const carryOut = createCarryOut({
    ...ports,
    begin,
    end(id, event) {
      inFlight.delete(id)
      void send(event)
    },
    fail: failRun,
  })
  const appointments: (() => void)[] = []
  const settled = Promise.withResolvers<void>()
  const state: { ending?: Ending; usage?: Usage; context: ContextUse; thoughts: string[]; pumping: boolean; stopping: boolean } = {
    context: { trimmed: 0 },
    thoughts: [],
    pumping: false,
    stopping: false,
  }
  const usedIds = new Set<string>()
  const known = new Map(joining.map(({ name, thread }) => [name, thread]))
  const threadOf = (name: string) => known.get(name)
  const step = createStepper({ runId: identity.runId, threads, threadOf, now: ports.now, approvalTtlMs })
  let inbox: QueuedEvent[] = []
  /** Messages of a person to the run: those that are not in the journal yet, and those that are in no request yet. */
  const said: { held: Steer[]; accepted: Steer[] } = { held: [], accepted: [] }
  const unrecorded = (event: AgentEvent) => {
    ports.piece?.(identity, event)
    return queue.push(event)
  }

  /**
   * Sends an external event. Resolves when it is on disk: with undefined, or with the name of the thread that rejected it. A cancel or stop
   * aborts at once.
   */
  function send(event: ExternalEvent): Promise<string | undefined> {
    const answer = enter(event)
    if (!state.pumping) void pump()
    return answer
  }

  /** Queues the event for the next `pump`. */
  function enter(event: ExternalEvent): Promise<string | undefined> {
    if (state.ending) return Promise.resolve('finisher')
    // A stop must not wait for a slow disk.
    if (event.type === 'cancel' || event.type === 'estop') {
      state.stopping = true
      abortAll()
    }
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    inbox.push({ event, answer: resolve })
    return promise
  }

  /** Resolves with true when a request to the model has the text, with false when the run has ended without one. */
  function steer(text: string): Promise<boolean> {
    if (state.ending) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    said.held.push({ event: ports.redact({ type: 'steer', text }), answer: resolve, isOffered: false })
    if (!inFlight.has('think')) offerSteers()
    return promise
  }

  /** During a request the loop rejects them: they are offered again after the reply. */
  function offerSteers(): void {
    for (const each of said.held.filter(({ isOffered }) => !isOffered)) {
      each.isOffered = true
      void send(each.event).then((by) => {
        each.isOffered = false
        if (by === undefined || by === 'loop') return
        said.held = said.held.filter((other) => other !== each)
        each.answer(false)
      })
    }
  }

  /** Adds a thread. Resolves when that is on disk: with undefined, or with the name of the thread that rejected it. */
  function add({ name, digest, thread }: PreparedThread): Promise<string | undefined> {
    known.set(name, thread)
    return send({ type: 'thread.add', name, digest })
  }

  /** Events that arrive during the write of a record wait for the next round. */
  async function pump(): Promise<void> {
    state.pumping = true
    while (inbox.length > 0 && !state.ending) {
      const sent = inbox
      inbox = []
      const rejected = await settle(sent.map(({ event }) => event))
      for (const { event, answer } of sent) answer(rejected(event))
    }
    for (const { answer } of inbox) answer('finisher')
    inbox = []
    state.pumping = false
  }

  /** Runs one super-step; all of it is on disk before the driver performs or shows any of it. @returns the thread that rejected an event */
  async function settle(events: readonly ExternalEvent[]): Promise<(event: ExternalEvent) => string | undefined> {
    try {
      const { selected, batch, rejected } = step(events)
      const committed = batch.length > 0 ? await recorder.commit(identity, batch) : nothing
      if (state.ending) return () => 'finisher'
      for (const receipt of committed.receipts.values()) log('info', 'receipt written', { receipt })
      for (const each of selected) applyEffect(each, committed)
      for (const { event, by } of rejected) log('warn', 'event rejected', { type: event.type, by })
      return (event) => rejected.find((rejection) => rejection.event === event)?.by
    } catch (error) {
      failRun(error)
      return () => 'integrity'
    }
  }

  function applyEffect({ event, shown }: SelectedEvent, { earlier, unusable }: Committed): void {
    messages.take(event)
    // Their ids belong to a reply of the history.
    if (event.type === 'run.start') for (const { call } of event.continues?.proposals ?? []) usedIds.add(call.id)
    if (event.type === 'steer') {
      said.accepted.push(...said.held.filter((each) => each.event === event))
      said.held = said.held.filter((each) => each.event !== event)
    } else if (event.type === 'model.done') offerSteers()
    else if (event.type === 'think') for (const { answer } of said.accepted.splice(0)) answer(true)
    state.context = contextAfter(state.context, event)
    const cost = event.type === 'model.done' || event.type === 'context.trimmed' ? event.usage : undefined
    if (cost) state.usage = addUsage(state.usage, cost)
    for (const each of unseen(event, shown)) void queue.push(each)
    logEvent(event, log)
    if (event.type === 'approval.decision' || event.type === 'deny' || event.type === 'drop') gates.close(event.id)
    if (event.type === 'think') void ask()
    else if (event.type === 'judge') void judge(event)
    else if (event.type === 'act') carryOut.act(event, unusable.get(event.id))
    else if (event.type === 'check') carryOut.check(event)
    else if (event.type === 'apply') carryOut.apply(event, unusable.get(event.id))
    else if (event.type === 'gate.open') gates.open(event, earlier.get(event.id))
    else if (event.type === 'drop') carryOut.drop(event)
    else if (event.type === 'cancel' || event.type === 'estop' || event.type === 'halt') abortAll()
    else if (event.type === 'finish') {
      log('info', 'memory persisted', { conversation: identity.conversationId, run: identity.runId })
      close(event.ending)
    }
  }

  /** Registers an effect. Effects that begin between a stop and its record are aborted from the start. */
  function begin(id: string): AbortSignal {
    const controller = new AbortController()
    inFlight.set(id, controller)
    if (state.stopping) controller.abort()
    return controller.signal
  }

  /** Removes the thinking events that the consumer already saw as they arrived; the journal stores the thoughts with the reply. */
  function unseen(event: RunEvent, shown: readonly AgentEvent[]): readonly AgentEvent[] {
    if (event.type !== 'model.done') return shown
    const streamed = state.thoughts.splice(0).join('')
    const thought = shown.flatMap((each) => (each.type === 'thinking' ? [each.content] : [])).join('')
    return streamed === thought ? shown.filter(({ type }) => type !== 'thinking') : shown
  }

  async function ask(): Promise<void> {
    const signal = begin('think')
    state.thoughts = []
    const reply = await askModel({
      question: {
        ...ports,
        signal,
        usedIds,
        onPiece: (piece) => {
          if (piece.type === 'thinking') state.thoughts.push(piece.content)
          return unrecorded(piece)
        },
      },
      request,
      messages,
      window: ports.window,
      record: send,
    })
    inFlight.delete('think')
    void send(reply)
  }

  /** Judges a call that a developer's thread requests in the same way as a call of the model. */
  async function judge({ id, by, call }: Extract<InternalEvent, { type: 'judge' }>): Promise<void> {
    void send({ type: 'judged', id, by, ...(await judgeFor({ by, call, judge: ports.judge, redact: ports.redact, usedIds })) })
  }

  /** Ends the run when the record cannot be written: nothing further may happen, and the consumer gets the reason. */
  function failRun(error: unknown): void {
    if (state.ending) return
    const message = errorText(error)
    const altered = error instanceof Error && 'integrity' in error && error.integrity === true
    abortAll()
    log('info', 'run failed', { error: message })
    void unrecorded({ type: 'error', code: altered ? 'integrity' : 'internal', message, recoverable: false })
    void unrecorded({ type: 'done', stopReason: 'error' })
    close({ stop: 'error', code: altered ? 'integrity' : 'error', message })
  }

  /** Sends the time `at` when it has come. The system clock may have been set back; the timer that fired is proof enough. */
  function ringAt(at: number, ms: number): void {
    const ring = () => (ms > longestTimer ? ringAt(at, ms - longestTimer) : void send({ type: 'clock', at: Math.max(ports.now(), at) }))
    appointments.push(ports.after(Math.max(0, Math.min(ms, longestTimer)), ring))
  }

  function close(ending: Ending): void {
    state.ending = ending
    for (const takeBack of appointments) takeBack()
    for (const { answer } of [...said.held.splice(0), ...said.accepted.splice(0)]) answer(false)
    gates.closeAll()
    queue.close()
    settled.resolve()
  }

  function abortAll(): void {
    for (const controller of inFlight.values()) controller.abort()
  }

  /** Starts the run and yields until `done`. A consumer that breaks out cancels what is in flight and waits for it. */
  async function* events(start: Extract<ExternalEvent, { type: 'run.start' }>): AsyncGenerator<AgentEvent> {
    if (maxMs > 0) ringAt(start.at + maxMs + 5, maxMs + 5)
    if (start.wiggum?.until !== undefined) ringAt(start.wiggum.until, start.wiggum.until - start.at)
    for (const { name, digest } of joining) void enter({ type: 'thread.add', name, digest })
    void send(ports.redact(start))
    try {
      yield* queue.items()
    } finally {
      queue.close()
      if (!state.ending) void send({ type: 'cancel', by: 'consumer' })
      await settled.promise
    }
  }

  return {
    events,
    send,
    steer,
    add,
    approve: gates.approve,
    /** Returns the call that an open gate asks about; undefined once it is answered. */
    gate: gates.get,
    /** Resolves when the gate has closed. */
    gateClosed: gates.closed,
    /** Resolves when the run has ended, even if nobody reads its events. */
    settled: settled.promise,
    ending: () => state.ending,
    /** Sums all model calls so far; undefined before the first. */
    usage: () => state.usage,
    context: () => state.context,
  }
}

/** Writes the log lines of seed 001 for one selected event. */
function logEvent(event: RunEvent, log: Log): void {
  if (event.type === 'propose')
    log('info', 'tool requested', { tool: event.call.name, risk: event.judgement.risk, call: event.judgement.summary })
  else if (event.type === 'approval.decision' && event.allow) log('info', 'tool approved', { call: event.id, by: event.by })
  else if (event.type === 'deny') log('info', 'tool denied', { tool: event.call.name, by: event.by, reason: event.reason })
  else if (event.type === 'drop') log('info', 'changes dropped', { tool: event.call.name, by: event.by, reason: event.reason })
  else if (event.type === 'apply')
    log('info', 'changes applied', { tool: event.call.name, digest: event.review.digest, count: event.review.count })
  else if (event.type === 'tool.done') {
    const { status, error } = event.outcome
    if (status === 'allowed') log('info', 'tool completed', { call: event.id })
    else log('info', status === 'denied' ? 'tool denied' : 'tool failed', { call: event.id, error })
  } else if (event.type === 'model.fail' && event.code !== 'aborted')
    log('info', 'provider failed', { code: event.code, message: event.message })
}
