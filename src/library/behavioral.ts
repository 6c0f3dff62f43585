/** Runs behavioral programs: `import { useBehavioral } from 'braidclaw/behavioral'`, on Bun and Node. */

import { LivelockError } from '../kernel/engine.ts'
import { advances, blockersOf, matches, select } from '../kernel/select.ts'
import { errorText } from '../kit/errors.ts'
import { isObject } from '../kit/json.ts'
import { didYouMean } from '../kit/text.ts'
import type { BPEvent, DetailOf, EventDetails, ProgramEvent, RulesFunction, StepBid } from './behavioral/b-thread.ts'
import { asEvent, bidOf, bSync, bThread } from './behavioral/b-thread.ts'

export type { BPEvent, BPListener, EventDetails, EventPattern, Idioms, Repeat, RulesFunction } from './behavioral/b-thread.ts'
export { bSync, bThread } from './behavioral/b-thread.ts'
export { type Frontier, frontier, type Program, type ProgramReport, type ProgramStep, verify } from './behavioral/check.ts'

export type Disconnect = () => void | Promise<void>

/**
 * Called with the detail of an event after it happened, and before the threads that it moved make their next bids. What a handler throws, also
 * later, goes to the snapshots; without a listener for them it stays uncaught.
 */
export type Handlers<D extends EventDetails = EventDetails> = { [K in keyof D]?: (detail: DetailOf<D[K]>) => void | Promise<void> }

/** The program is at rest again when it returns. Called in a handler it returns at once: the event comes when no request is left. */
export type Trigger<D extends EventDetails = EventDetails> = (event: BPEvent<D>) => void

/** `priority` is the place of the thread, 0 for a trigger. */
export type SelectionBid = { readonly thread: string; readonly trigger: boolean; readonly selected: boolean; readonly priority: number } & {
  readonly type: string
  readonly detail?: unknown
  readonly blockedBy?: string
  readonly interrupts?: string
}

/** `deadlock`: there are requests, and all are blocked. */
export type SnapshotMessage =
  | { readonly kind: 'selection' | 'deadlock'; readonly bids: readonly SelectionBid[] }
  | { readonly kind: 'feedback_error'; readonly type: string; readonly detail?: unknown; readonly error: string }
  | { readonly kind: 'bthreads_warning'; readonly thread: string; readonly warning: string }
type SnapshotListener = (message: SnapshotMessage) => void | Promise<void>

export type BThreads = {
  /** Adds threads, which begin with the next event; those that were added earlier go first. A name in use keeps its thread. */
  set(threads: { readonly [name: string]: RulesFunction }): void
  /** `running`: the thread makes its next bid soon. `pending`: it has made its bid. */
  has(name: string): { readonly running: boolean; readonly pending: boolean }
}

export type BehavioralOptions = {
  /** How many events may follow from one trigger; default 10,000. Beyond it `trigger` throws a LivelockError. */
  readonly maxSelections?: number
}

export type Behavioral<D extends EventDetails = EventDetails> = {
  readonly bThreads: BThreads
  readonly trigger: Trigger<D>
  useFeedback(handlers: Handlers<D>): Disconnect
  useSnapshot(listener: SnapshotListener): Disconnect
}

/** `bid` is absent while the thread moves, and `isOver` set when an event has interrupted it. */
type ActiveThread = { readonly priority: number; readonly steps: ReturnType<RulesFunction>; bid?: StepBid | undefined; isOver?: boolean }

/** A trigger has no thread. */
type ProgramBid = { readonly name: string; readonly thread?: ActiveThread; readonly bid: StepBid }

type Observer = { onBids(bids: readonly ProgramBid[], chosen?: number): void; onEvent(event: ProgramEvent): void }

/** How many of the latest events a LivelockError lists. */
const TAIL = 10

/** The threads go in the order of the map. */
function createScheduler(threads: Map<string, ActiveThread>, maxSelections: number, { onBids, onEvent }: Observer) {
  let isStepping = false
  let inbox: ProgramEvent[] = []

  function superstep(): void {
    const recent: string[] = []
    for (let count = 0, event = inbox.shift(); ; ) {
      for (const [name, thread] of threads) if (thread.bid === undefined) move(name, thread)
      const bids = bidsNow(event)
      const choice = select(bids.map(({ bid }) => bid))
      onBids(bids, choice.type === 'internal' ? choice.thread : undefined)
      if (choice.type === 'internal') {
        if (++count > maxSelections - TAIL) recent.push(choice.event.id)
        if (count > maxSelections) throw new LivelockError(maxSelections, recent.slice(-TAIL))
        take(bids, choice)
        event = undefined
      } else {
        event = inbox.shift()
        if (event === undefined) return
      }
    }
  }

  function move(name: string, thread: ActiveThread): void {
    try {
      const step = thread.isOver ? thread.steps.return() : thread.steps.next()
      if (step.done) threads.delete(name)
      else thread.bid = bidOf(name, step.value)
    } catch (error) {
      threads.delete(name)
      throw new Error(`thread "${name}" threw and has ended: ${errorText(error)}`, { cause: error })
    }
  }

  function bidsNow(event: ProgramEvent | undefined): ProgramBid[] {
    const bids: ProgramBid[] = event === undefined ? [] : [{ name: `Symbol(${event.id})`, bid: { request: [event] } }]
    for (const [name, thread] of threads) {
      const { bid } = thread
      if (bid !== undefined) bids.push({ name, thread, bid: bid.template ? { ...bid, request: [bid.template()] } : bid })
    }
    return bids
  }

  /** Asks every listener before it moves a thread: one that throws changes nothing. */
  function take(bids: readonly ProgramBid[], { event, thread: chosen }: { readonly event: ProgramEvent; readonly thread: number }): void {
    const moving = bids.filter(({ thread }, place) => thread?.bid && (place === chosen || advances(thread.bid, event)))
    const interrupted = moving.filter(({ bid }) => matches(bid.interrupt, event))
    for (const { thread } of moving) if (thread) thread.bid = undefined
    for (const { thread } of interrupted) if (thread) thread.isOver = true
    onEvent(event)
  }

  return (event: ProgramEvent): void => {
    inbox.push(event)
    if (isStepping) return
    isStepping = true
    try {
      superstep()
    } finally {
      isStepping = false
      inbox = []
    }
  }
}

/** Adds one to a set until it is taken off again. */
function joined<T>(all: Set<T>, one: T): () => void {
  all.add(one)
  return () => void all.delete(one)
}

/** Creates a program without threads. @throws (`trigger`) LivelockError, or an Error that names the thread which threw */
export function behavioral<D extends EventDetails = EventDetails>(options: BehavioralOptions = {}): Behavioral<D> {
  const threads = new Map<string, ActiveThread>()
  const handlers = new Set<(event: ProgramEvent) => void>()
  const listeners = new Set<SnapshotListener>()
  const publish = (message: SnapshotMessage) => {
    for (const listener of listeners) attempt(() => listener(message), reject)
  }
  let last = 0
  const trigger = createScheduler(threads, options.maxSelections ?? 10_000, {
    onBids(bids, chosen) {
      const requests = listeners.size > 0 ? shownBids(bids, chosen) : []
      if (requests.length > 0) publish({ kind: chosen === undefined ? 'deadlock' : 'selection', bids: requests })
    },
    onEvent(event) {
      for (const handle of handlers) handle(event)
    },
  })

  function useFeedback(given: Handlers<D>): Disconnect {
    const known = new Map(Object.entries(given))
    function handle({ id: type, detail }: ProgramEvent): void {
      attempt(
        () => known.get(type)?.call(given, detail),
        (error) => {
          publish({ kind: 'feedback_error', type, detail, error: errorText(error) })
          if (listeners.size === 0) reject(error)
        },
      )
    }
    return joined(handlers, handle)
  }

  function set(added: { readonly [name: string]: RulesFunction }): void {
    for (const [name, rules] of Object.entries(added)) {
      if (typeof rules !== 'function') throw new TypeError(`bThreads.set: "${name}" is not a thread; make it with bThread or bSync`)
      const warning = `Thread "${name}" already exists and cannot be replaced. Use the 'interrupt' idiom to terminate threads explicitly.`
      if (!threads.has(name)) threads.set(name, { priority: ++last, steps: rules() })
      else publish({ kind: 'bthreads_warning', thread: name, warning })
    }
  }

  function has(name: string): ReturnType<BThreads['has']> {
    const thread = threads.get(name)
    return { running: thread !== undefined && thread.bid === undefined, pending: thread?.bid !== undefined }
  }

  return {
    bThreads: { set, has },
    trigger: (event) => trigger(asEvent(event, 'trigger: the event')),
    useFeedback,
    useSnapshot: (listener) => joined(listeners, listener),
  }
}

function shownBids(bids: readonly ProgramBid[], chosen: number | undefined): SelectionBid[] {
  const all = bids.map(({ bid }) => bid)
  return bids.flatMap(({ name, thread, bid }, place) =>
    (bid.request ?? []).map((event) => {
      const blockedBy = bids[blockersOf(all, event)[0] ?? -1]?.name
      const interrupts = bids.find((other) => matches(other.bid.interrupt, event))?.name
      const shown = { thread: name, trigger: thread === undefined, selected: place === chosen, priority: thread?.priority ?? 0 }
      return { ...shown, type: event.id, detail: event.detail, blockedBy, interrupts }
    }),
  )
}

/** Reports what the step throws, and what its promise is rejected with. */
function attempt(step: () => unknown, onFailure: (error: unknown) => void): void {
  try {
    const done = step()
    if (isObject(done) && typeof done.then === 'function') Promise.resolve(done).then(undefined, onFailure)
  } catch (error) {
    onFailure(error)
  }
}

function reject(error: unknown): void {
  void Promise.reject(error)
}

type ProgramTools<D extends EventDetails, Output> = Pick<Behavioral<D>, 'bThreads' | 'useSnapshot'> & {
  readonly bSync: typeof bSync<D>
  readonly bThread: typeof bThread<D>
  readonly trigger: Trigger<D> & { addDisconnectCallback(callback: Disconnect): void }
  readonly disconnect: Disconnect
  /** Passes an output to the listeners of `onEmit`, unless the context has an `emit` of its own. */
  readonly emit: (output: Output) => void
}

/** @throws UnauthorizedEvent for an event that is not public */
export type PublicTrigger<D extends EventDetails = EventDetails, Output = unknown> = Trigger<D> & {
  onEmit(listener: (output: Output) => void): Disconnect
  /** Removes the handlers and calls what was registered for the end. */
  disconnect(): Promise<void>
}

export type ProgramOptions<D extends EventDetails, Context extends object, Output> = BehavioralOptions & {
  readonly publicEvents?: readonly (keyof D & string)[]
  bProgram(tools: Omit<ProgramTools<D, Output>, keyof Context> & Context): Handlers<D> | Promise<Handlers<D>>
}

export class UnauthorizedEvent extends Error {
  override readonly name = 'UnauthorizedEvent'
}

/** Describes a program. Each call of the returned function starts one of its own, and resolves when its handlers are in place. */
export function useBehavioral<D extends EventDetails, Context extends object = object, Output = unknown>(
  program: ProgramOptions<D, Context, Output>,
): (context: Context) => Promise<PublicTrigger<D, Output>> {
  const publicEvents: readonly string[] = program.publicEvents ?? []
  return async (context) => {
    const { useFeedback, ...engine } = behavioral<D>(program)
    const cleanups = new Set<Disconnect>()
    const outputs = new Set<(output: Output) => void>()
    const emit = (output: Output) => {
      for (const listener of outputs) listener(output)
    }
    const disconnect = async () => {
      const all = [...cleanups]
      cleanups.clear()
      await Promise.all(all.map(async (cleanup) => cleanup()))
    }
    const addDisconnectCallback = (callback: Disconnect) => void cleanups.add(callback)
    const trigger = Object.assign((event: BPEvent<D>) => engine.trigger(event), { addDisconnectCallback })
    cleanups.add(useFeedback(await program.bProgram({ ...engine, bSync, bThread, trigger, disconnect, emit, ...context })))
    const outer = (event: BPEvent<D>) => {
      const { id } = asEvent(event, 'trigger: the event')
      const allowed = `Only public event types can be triggered: [${publicEvents.join(', ')}]`
      if (!publicEvents.includes(id))
        throw new UnauthorizedEvent(`Event type "${id}" is not allowed. ${allowed}${didYouMean(id, publicEvents)}`)
      engine.trigger(event)
    }
    return Object.assign(outer, { onEmit: (listener: (output: Output) => void) => joined(outputs, listener), disconnect })
  }
}
