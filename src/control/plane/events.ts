/** Records events in the transaction of the command that causes them, and serves them as pages and streams. */

import { createInbox } from '../../kit/queue.ts'
import type { ControlEvent, EventQuery } from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import type { EventPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Param, Row, Statement, Store } from '../contract/store-port.ts'
import { amount, idOrNull, int, intOrNull, numberOf, object, type PlaneContext, take, taken, text, textOrNull, time } from './command.ts'

/**
 * A list is newest first, and its `next` is the `before` of the next page. With `after` it is oldest first, and its `next` is the next
 * `after`.
 */
export function createEventPlane(context: PlaneContext): EventPlane {
  const hub = createEventHub(context)
  return {
    async list(caller, { after, before, limit, ...wanted }) {
      const filter = filterOf(caller, wanted)
      if (!filter) return { events: [], next: null }
      const range = { filter, limit: limit + 1, after, before }
      const rows = await context.store.read(() => readEvents(range))
      const events = rows.slice(0, limit).map(eventOf)
      return { events, next: rows.length > limit ? (events.at(-1)?.id ?? null) : null }
    },
    follow: (caller, { after, ...wanted }, signal) =>
      followEvents(context, { hub, caller, filter: filterOf(caller, wanted), after, signal }),
  }
}

type Following = {
  readonly hub: EventHub
  readonly caller: Caller
  /** Undefined: the caller may see nothing of what it asked for. */
  readonly filter: EventFilter | undefined
  readonly after: number | undefined
  readonly signal: AbortSignal
}

/** Events that wait in memory for a subscriber. One that has more waiting reads them from the database when it comes to them. */
const mostWaiting = 256
const rowsAtOnce = 200

type State = { position: number; waiting: number; isLate: boolean; isOver: boolean; wake: () => void }

/** Ends when the signal is aborted, and when the token or key of the caller is revoked. */
async function* followEvents(context: PlaneContext, { hub, caller, filter, after, signal }: Following): AsyncGenerator<ControlEvent> {
  const inbox = createInbox<Row>()
  const state: State = { position: 0, waiting: 0, isLate: true, isOver: signal.aborted, wake: () => {} }

  function hear(row: Row): void {
    if (isRevoked(caller, row)) state.isOver = true
    else if (state.isLate || !filter || !matches(filter, row)) return
    else if (state.waiting >= mostWaiting) state.isLate = true
    else {
      inbox.push(row)
      state.waiting += 1
    }
    state.wake()
  }

  const stop = () => {
    state.isOver = true
    state.wake()
  }
  signal.addEventListener('abort', stop, { once: true })
  const { from, leave } = await hub.join(hear)
  try {
    state.position = after === undefined ? from : Math.min(after, await context.store.read(lastEventId))
    while (!state.isOver) {
      if (state.waiting > 0) {
        const row = inbox.first()
        inbox.drop()
        state.waiting -= 1
        if (row && int(row, 'id') > state.position) yield pass(row)
      } else if (state.isLate && filter) yield* replay(filter)
      else
        await new Promise<void>((resolve) => {
          state.wake = resolve
        })
    }
  } finally {
    leave()
    signal.removeEventListener('abort', stop)
  }

  /** New events wait from before the last look on, so none comes in between. */
  async function* replay(wanted: EventFilter): AsyncGenerator<ControlEvent> {
    state.isLate = false
    for (;;) {
      const range = { filter: wanted, after: state.position, limit: rowsAtOnce }
      const rows = await context.store.read(() => readEvents(range))
      for (const row of rows) {
        if (state.isOver) return
        yield pass(row)
      }
      if (rows.length < rowsAtOnce) return
    }
  }

  function pass(row: Row): ControlEvent {
    state.position = int(row, 'id')
    return eventOf(row)
  }
}

/** A stream that is open must not outlive the credential it was opened with. */
function isRevoked(caller: Caller, row: Row): boolean {
  if (caller.kind === 'operator') return row.type === 'operator.revoked' && object(row, 'data').id === caller.id
  if (row.type !== 'key.revoked' && row.type !== 'agent.removed') return false
  return caller.kind !== 'seed' && row.agent_id === caller.id
}

type EventHub = {
  /**
   * Calls `heard` with every event after the number it answers, in order; what was committed before can be read.
   * `heard` must not throw.
   */
  join(heard: (row: Row) => void): Promise<{ readonly from: number; readonly leave: () => void }>
}

type HubState = { last: number; isReading: boolean; isAsked: boolean; started?: Promise<() => void> }

const rowsOfHub = 500
/** An announcement that got lost delays events by this at most. */
const lookAgainMs = 2_000

export function createEventHub({ store, options }: Pick<PlaneContext, 'store' | 'options'>): EventHub {
  const followers = new Set<(row: Row) => void>()
  const state: HubState = { last: 0, isReading: false, isAsked: false }

  async function readNew(): Promise<void> {
    state.isAsked = true
    if (state.isReading) return
    state.isReading = true
    try {
      while (state.isAsked && followers.size > 0) state.isAsked = await readOnce()
    } catch (error) {
      options.log('warn', 'new events could not be read; they are read again soon', { error: String(error) })
    } finally {
      state.isReading = false
    }
  }

  /** @returns whether there is more, or somebody asked meanwhile */
  async function readOnce(): Promise<boolean> {
    state.isAsked = false
    const rows = await store.read(() => readEvents({ filter: {}, after: state.last, limit: rowsOfHub }))
    for (const row of rows) {
      state.last = int(row, 'id')
      for (const heard of followers) heard(row)
    }
    return rows.length === rowsOfHub || state.isAsked
  }

  async function start(): Promise<() => void> {
    const stop = listenTo(store, () => void readNew())
    try {
      state.last = await store.read(lastEventId)
      return stop
    } catch (error) {
      stop()
      delete state.started
      throw error
    }
  }

  function leave(heard: (row: Row) => void): void {
    followers.delete(heard)
    if (followers.size > 0) return
    void state.started?.then((stop) => stop())
    delete state.started
  }

  return {
    async join(heard) {
      followers.add(heard)
      try {
        state.started ??= start()
        await state.started
      } catch (error) {
        leave(heard)
        throw error
      }
      return { from: state.last, leave: () => leave(heard) }
    },
  }
}

function listenTo(store: Store, look: () => void): () => void {
  const stop = store.listen('events', look)
  const state: { timer?: ReturnType<typeof setTimeout> } = {}
  const later = () => {
    state.timer = setTimeout(() => {
      look()
      later()
    }, lookAgainMs)
    state.timer.unref()
  }
  later()
  return () => {
    stop()
    clearTimeout(state.timer)
  }
}

function eventOf(row: Row): ControlEvent {
  return {
    id: int(row, 'id'),
    at: time(row, 'at'),
    type: text(row, 'type'),
    actor: text(row, 'actor'),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    agent_id: textOrNull(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    data: object(row, 'data'),
  }
}

/** Columns and the values that they must have. */
type EventFilter = { readonly type?: string; readonly task_id?: number; readonly run_id?: number; readonly agent_id?: string }

type EventWanted = Pick<EventQuery, 'type' | 'task_id' | 'run_id' | 'agent_id'>

/**
 * An operator sees everything, an agent what happened to itself, a run what happened to its task. Undefined: the caller asks for what it may
 * not see, so nothing matches. @throws PlaneRefusal forbidden for the shared secret
 */
function filterOf(caller: Caller, wanted: EventWanted): EventFilter | undefined {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read events; use an operator token or an agent key')
  const given = {
    type: wanted.type,
    task_id: wanted.task_id === undefined ? undefined : numberOf(wanted.task_id),
    run_id: wanted.run_id === undefined ? undefined : numberOf(wanted.run_id),
    agent_id: wanted.agent_id,
  }
  if (caller.kind === 'operator') return given
  if (caller.kind === 'agent')
    return given.agent_id === undefined || given.agent_id === caller.id ? { ...given, agent_id: caller.id } : undefined
  const own = numberOf(caller.taskId)
  return given.task_id === undefined || given.task_id === own ? { ...given, task_id: own } : undefined
}

function matches(filter: EventFilter, row: Row): boolean {
  if (filter.type !== undefined && row.type !== filter.type) return false
  if (filter.agent_id !== undefined && row.agent_id !== filter.agent_id) return false
  if (filter.task_id !== undefined && intOrNull(row, 'task_id') !== filter.task_id) return false
  return filter.run_id === undefined || intOrNull(row, 'run_id') === filter.run_id
}

type EventRange = { readonly filter: EventFilter; readonly after?: number; readonly before?: number; readonly limit: number }

/** Oldest first with `after`, otherwise newest first. */
export function* readEvents({ filter, after, before, limit }: EventRange): Command<readonly Row[]> {
  const names = (['type', 'task_id', 'run_id', 'agent_id'] as const).filter((name) => filter[name] !== undefined)
  const conditions = [
    ...names.map((name) => `${name} = ?`),
    // Events of a run are found by its task: they need no index of their own.
    ...(filter.run_id === undefined || filter.task_id !== undefined ? [] : ['task_id = (SELECT task_id FROM runs WHERE id = ?)']),
    ...(after === undefined ? [] : ['id > ?']),
    ...(before === undefined ? [] : ['id < ?']),
  ]
  const params: Param[] = names.map((name) => filter[name] ?? null)
  if (filter.run_id !== undefined && filter.task_id === undefined) params.push(filter.run_id)
  if (after !== undefined) params.push(after)
  if (before !== undefined) params.push(before)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return yield [`SELECT * FROM events ${where} ORDER BY id ${after === undefined ? 'DESC' : 'ASC'} LIMIT ?`, [...params, limit]]
}

function* lastEventId(): Command<number> {
  return yield* amount('SELECT MAX(id) AS value FROM events')
}

/** Writes one event into the transaction of the command that caused it. */
type NewEvent = {
  /** `entity.happening`, for example `task.completed`. */
  readonly type: string
  /** What `signatureOf(caller)` answers, or the part of the control plane that acted by itself, for example `clock`. */
  readonly actor: string
  readonly taskId?: number | null | undefined
  readonly runId?: number | null | undefined
  readonly agentId?: string | null | undefined
  readonly role?: string | null | undefined
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

/** `eventsLast` takes this text out of the command, and writes all its events before the commit, in one go. */
const WRITE_EVENT = '-- event'
const columns = 'id, at, type, actor, task_id, run_id, agent_id, role, data'

export function* recordEvent(
  context: Pick<PlaneContext, 'store' | 'now'>,
  { type, actor, taskId = null, runId = null, agentId = null, role = null, data = {} }: NewEvent,
): Command<void> {
  yield [WRITE_EVENT, [context.now(), type, actor, taskId, runId, agentId, role, JSON.stringify(data)]]
  yield* context.store.announce('events')
}

/** Rows that one INSERT writes: within the 32,766 parameters that SQLite takes. */
const rowsPerInsert = 500

/** Writes events whose ids are handed out now, in one row lock. `events` are the parameters that came with `WRITE_EVENT`. */
function* writeEvents(events: readonly (readonly Param[])[]): Command<void> {
  for (let at = 0; at < events.length; at += rowsPerInsert) {
    const some = events.slice(at, at + rowsPerInsert)
    yield* take('events', some.length)
    yield insertOf(some)
  }
}

const rowMarks = `(${taken.events} - ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const insertOne = `INSERT INTO events (${columns}) VALUES ${rowMarks}`

function insertOf(events: readonly (readonly Param[])[]): Statement {
  const others = events.slice(1).map(() => `, ${rowMarks}`)
  return [`${insertOne}${others.join('')}`, events.flatMap((event, at) => [events.length - at - 1, ...event])]
}

/**
 * Makes a store that writes the events of a command at its end: every daemon locks the one row that hands out their ids only for the commit,
 * and after all its other locks, so that two commands do not wait for each other.
 */
export function eventsLast(store: Store): Store {
  return {
    ...store,
    write: (command, beside) => store.write(() => withEventsLast(command), beside),
    get reachable() {
      return store.reachable
    },
  }
}

function* withEventsLast<T>(command: () => Command<T>): Command<T> {
  const events: (readonly Param[])[] = []
  const inner = command()
  let step = inner.next([])
  while (!step.done) {
    const [sql, params = []] = step.value
    if (sql === WRITE_EVENT) events.push(params)
    step = inner.next(sql === WRITE_EVENT ? [] : yield step.value)
  }
  yield* writeEvents(events)
  return step.value
}
