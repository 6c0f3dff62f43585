/** Drives one run: feeds outside events to the kernel, carries out what it selects, and hands the consumer what it may see. */

import { createEngine } from '../kernel/engine.ts'
import type { Rejection } from '../kernel/select.ts'
import type { AnyThread } from '../kernel/thread.ts'
import type { AgentEvent, Ending, ExternalEvent, InternalEvent, Proposal, RunEvent, ToolOutcome, Usage } from './event.ts'
import { createGates } from './gates.ts'
import { heldBy } from './held.ts'
import type {
  Act,
  ChatRequest,
  Clock,
  Decision,
  Judge,
  Log,
  Message,
  Provider,
  Questions,
  Recorder,
  Redact,
  RedactStream,
  RunIdentity,
} from './port.ts'
import { digestLine, type Projected, project, projection } from './project.ts'
import { createQueue } from './queue.ts'
import { think } from './think.ts'
import { messagesOf } from './transcript.ts'
import { addUsage } from './usage.ts'

/** Calls `then` once after `ms`; the result takes the appointment back. */
export type After = (ms: number, then: () => void) => () => void

export type RunPorts = {
  readonly provider: Provider
  readonly judge: Judge
  readonly act: Act
  readonly recorder: Recorder
  readonly questions: Questions
  readonly log: Log
  readonly now: Clock
  readonly after: After
  /** Takes secrets out of whatever comes in, before anything sees, stores or repeats it. */
  readonly redact: Redact
  readonly redactStream: RedactStream
}

export type RunOptions = {
  readonly identity: RunIdentity
  readonly threads: readonly AnyThread<RunEvent>[]
  readonly ports: RunPorts
  /** Everything of a question but its messages: they grow with the run. */
  readonly request: Omit<ChatRequest, 'messages'>
  readonly history: readonly Message[]
  readonly approvalTtlMs: number
  /** Wall-clock limit of the run; zero is none. */
  readonly maxMs: number
}

type Happened = { readonly event: RunEvent; readonly shown: readonly AgentEvent[] }

export type Run = {
  /** Starts the run and yields until `done`. A consumer that breaks out cancels what is in flight and waits for it. */
  events(start: Extract<ExternalEvent, { type: 'run.start' }>): AsyncGenerator<AgentEvent>
  /** @returns the name of the thread that rejected it, or undefined when it counted. */
  send(event: ExternalEvent): string | undefined
  approve(gateId: string, decision: Decision): string | undefined
  /** What an open gate asks about; undefined once it is answered. */
  gate(gateId: string): Proposal | undefined
  ending(): Ending | undefined
  /** Of all model calls so far; undefined before the first. */
  usage(): Usage | undefined
}

const queueCapacity = 256

export function createRun({ identity, threads, ports, request, history, approvalTtlMs, maxMs }: RunOptions): Run {
  const { recorder, questions, log } = ports
  const messages = [...history]
  const queue = createQueue<AgentEvent>(queueCapacity)
  const inFlight = new Map<string, AbortController>()
  /** Yeses given before a gate opened, and approved calls whose yes is not good any more. */
  const earlier = new Map<string, Decision>()
  const unusable = new Map<string, string>()
  const gates = createGates({
    identity,
    questions,
    after: ports.after,
    ttlMs: approvalTtlMs,
    decide: (id, plan, { allow, by, note }) => send({ type: 'approval.decision', id, allow, by, plan, ...(note ? { note } : {}) }),
    fail: collapse,
  })
  const appointments: (() => void)[] = []
  const digest = new Bun.CryptoHasher('sha256')
  const settled = Promise.withResolvers<void>()
  const state: { seen: Projected; ending?: Ending; usage?: Usage; busy: boolean; thoughts: string[] } = {
    seen: projection(identity.runId),
    busy: false,
    thoughts: [],
  }
  const usedIds = new Set<string>()
  const engine = createEngine<RunEvent>({
    threads,
    onExternal: (event) => {
      recorder.external(identity, event as ExternalEvent)
    },
  })

  function send(event: ExternalEvent): string | undefined {
    if (state.ending) return 'finisher'
    engine.send(event)
    if (state.busy) return undefined
    state.busy = true
    try {
      const { happened, rejected } = recorder.together(settle)
      for (const each of happened) carryOut(each)
      for (const { event: refused, by } of rejected) log('warn', 'event rejected', { type: refused.type, by })
      return rejected.find((rejection) => rejection.event === event)?.by
    } catch (error) {
      collapse(error)
      return 'integrity'
    } finally {
      state.busy = false
    }
  }

  /** One super-step and its record: all of it is on disk before any of it is carried out or shown. */
  function settle(): { happened: readonly Happened[]; rejected: readonly Rejection<RunEvent>[] } {
    const happened: Happened[] = []
    const { rejected } = engine.superstep((event) => {
      const blockers = event.type === 'stalled' ? heldBy(engine.explain()) : ''
      state.seen = project(state.seen, event, blockers)
      for (const seen of state.seen.events) digest.update(digestLine(seen, identity.runId))
      happened.push({ event, shown: state.seen.events })
      record(event)
    })
    return { happened, rejected }
  }

  function record(event: RunEvent): void {
    if (event.type === 'act') recordAct(event)
    else if (event.type === 'deny') {
      recorder.denied(identity, event)
      questions.refused(identity, event)
    } else if (event.type === 'gate.open') recordGate(event)
    else if (event.type === 'approval.decision') questions.decided(identity, event)
    else if (event.type === 'finish') recorder.finished(identity, event, digest.digest('hex'))
  }

  function recordAct(event: Extract<InternalEvent, { type: 'act' }>): void {
    recorder.intent(identity, event)
    const refusal = event.approval === undefined ? undefined : questions.use(identity, event)
    if (refusal !== undefined) unusable.set(event.id, refusal)
  }

  function recordGate(event: Extract<InternalEvent, { type: 'gate.open' }>): void {
    const given = questions.opened(identity, event, ports.now() + approvalTtlMs)
    if (given) earlier.set(event.id, given)
  }

  function carryOut({ event, shown }: Happened): void {
    messages.push(...messagesOf(event))
    if (event.type === 'model.done') state.usage = addUsage(state.usage, event.usage)
    for (const each of unseen(event, shown)) void queue.push(each)
    narrate(event, log)
    if (event.type === 'think') void ask()
    else if (event.type === 'act') act(event)
    else if (event.type === 'gate.open') gates.open(event.id, event, earlier.get(event.id))
    else if (event.type === 'approval.decision' || event.type === 'deny') gates.close(event.id)
    else if (event.type === 'cancel' || event.type === 'estop' || event.type === 'halt') abortAll()
    else if (event.type === 'finish') close(event.ending)
  }

  /** What was thought is journalled with the reply, but was told while it came. */
  function unseen(event: RunEvent, shown: readonly AgentEvent[]): readonly AgentEvent[] {
    if (event.type !== 'model.done') return shown
    const told = state.thoughts.splice(0).join('')
    const thought = shown.flatMap((each) => (each.type === 'thinking' ? [each.content] : [])).join('')
    return told === thought ? shown.filter(({ type }) => type !== 'thinking') : shown
  }

  async function ask(): Promise<void> {
    const controller = new AbortController()
    inFlight.set('think', controller)
    state.thoughts = []
    const reply = await think({
      provider: ports.provider,
      judge: ports.judge,
      request: { ...request, messages: [...messages] },
      signal: controller.signal,
      redact: ports.redact,
      redactStream: ports.redactStream,
      usedIds,
      onPiece: (piece) => {
        if (piece.type === 'thinking') state.thoughts.push(piece.content)
        return queue.push(piece)
      },
    })
    inFlight.delete('think')
    send(reply)
  }

  function act(event: Extract<InternalEvent, { type: 'act' }>): void {
    const controller = new AbortController()
    inFlight.set(event.id, controller)
    const refusal = unusable.get(event.id)
    const outcome = refusal === undefined ? ports.act(event, controller.signal) : Promise.resolve(notApproved(refusal))
    void outcome.then((outcome) => {
      inFlight.delete(event.id)
      send({ type: 'tool.done', id: event.id, outcome: ports.redact(outcome) })
    }, collapse)
  }

  /** The record itself failed: nothing further may happen, and the consumer hears why. */
  function collapse(error: unknown): void {
    if (state.ending) return
    const message = error instanceof Error ? error.message : String(error)
    const altered = error instanceof Error && 'integrity' in error && error.integrity === true
    abortAll()
    log('info', 'run failed', { error: message })
    void queue.push({ type: 'error', code: altered ? 'integrity' : 'internal', message, recoverable: false })
    void queue.push({ type: 'done', stopReason: 'error' })
    close({ stop: 'error', code: altered ? 'integrity' : 'error', message })
  }

  function close(ending: Ending): void {
    state.ending = ending
    for (const takeBack of appointments) takeBack()
    gates.closeAll()
    queue.close()
    settled.resolve()
  }

  function abortAll(): void {
    for (const controller of inFlight.values()) controller.abort()
  }

  async function* events(start: Extract<ExternalEvent, { type: 'run.start' }>): AsyncGenerator<AgentEvent> {
    // The clock may be set back meanwhile; that the appointment came due is proof enough that the time is over.
    const over = start.at + maxMs + 5
    if (maxMs > 0) appointments.push(ports.after(maxMs + 5, () => send({ type: 'clock', at: Math.max(ports.now(), over) })))
    send(ports.redact(start))
    try {
      yield* queue.items()
    } finally {
      queue.close()
      if (!state.ending) send({ type: 'cancel', by: 'consumer' })
      await settled.promise
    }
  }

  return { events, send, approve: gates.approve, gate: gates.get, ending: () => state.ending, usage: () => state.usage }
}

/** Refused like any call that changed after it was judged. */
function notApproved(reason: string): ToolOutcome {
  return { status: 'denied', output: '', error: `approval.unusable: ${reason}` }
}

/** The log lines of seed 001 for one selected event. */
function narrate(event: RunEvent, log: Log): void {
  if (event.type === 'propose')
    log('info', 'tool requested', { tool: event.call.name, risk: event.judgement.risk, call: event.judgement.summary })
  else if (event.type === 'approval.decision' && event.allow) log('info', 'tool approved', { call: event.id, by: event.by })
  else if (event.type === 'deny') log('info', 'tool denied', { tool: event.call.name, by: event.by, reason: event.reason })
  else if (event.type === 'tool.done') {
    const { status, error } = event.outcome
    if (status === 'allowed') log('info', 'tool completed', { call: event.id })
    else log('info', status === 'denied' ? 'tool denied' : 'tool failed', { call: event.id, error })
  } else if (event.type === 'model.fail' && event.code !== 'aborted')
    log('info', 'provider failed', { code: event.code, message: event.message })
}
