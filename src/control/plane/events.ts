/** Records events in the transaction of the command that causes them, and serves them as pages and streams. */

import { createInbox } from '../../kit/queue.ts'
import type { ControlEvent, EventQuery } from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import type { EventPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Param, Row, Statement, Store } from '../contract/store-port.ts'
import {
  idOrNull,
  int,
  intOrNull,
  lastNumber,
  numberOf,
  object,
  type PlaneContext,
  queryNumber,
  reserveNumber,
  text,
  textOrNull,
  time,
  whereOf,
} from './command.ts'

/** Lists newest first, where `next` is the `before` of the next page; with `after` oldest first, where `next` is the next `after`. */
export function createEventPlane(context: PlaneContext): EventPlane {
  const hub = createEventHub(context)
  return {
    async list(caller, { after, before, limit, ...query }) {
      const filter = filterOf(caller, query)
      if (!filter) return { events: [], next: null }
      const range = { filter, limit: limit + 1, after, before }
      const rows = await context.store.read(() => readEvents(range))
      const events = rows.slice(0, limit).map(eventOf)
      return { events, next: rows.length > limit ? (events.at(-1)?.id ?? null) : null }
    },
    follow: (caller, { after, ...query }, signal) => followEvents(context, { hub, caller, filter: filterOf(caller, query), after, signal }),
  }
}

type FollowOptions = {
  readonly hub: EventHub
  readonly caller: Caller
  /** Undefined when the caller may see nothing that it asks for. */
  readonly filter: EventFilter | undefined
  readonly after: number | undefined
  readonly signal: AbortSignal
}

/** This many events may wait in memory for a subscriber. A slower subscriber reads the rest from the database. */
const mostWaiting = 256
const rowsAtOnce = 200

type FollowerState = { position: number; waiting: number; isLate: boolean; isOver: boolean; wake: () => void }

/** Ends when the signal aborts, or when the token or key of the caller is revoked. */
async function* followEvents(context: PlaneContext, { hub, caller, filter, after, signal }: FollowOptions): AsyncGenerator<ControlEvent> {
  const inbox = createInbox<Row>()
  const state: FollowerState = { position: 0, waiting: 0, isLate: true, isOver: signal.aborted, wake: () => {} }

  function receive(row: Row): void {
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
  const { from, leave } = await hub.join(receive)
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

  /** Reads the missed events. New ones wait in memory from before the last read on, so none is lost in between. */
  async function* replay(query: EventFilter): AsyncGenerator<ControlEvent> {
    state.isLate = false
    for (;;) {
      const range = { filter: query, after: state.position, limit: rowsAtOnce }
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

/** Ends an open stream together with the credential that opened it. */
function isRevoked(caller: Caller, row: Row): boolean {
  if (caller.kind === 'operator') return row.type === 'operator.revoked' && object(row, 'data').id === caller.id
  if (row.type !== 'key.revoked' && row.type !== 'agent.removed') return false
  return caller.kind !== 'seed' && row.agent_id === caller.id
}

type EventHub = {
  /** Calls `listener`, which must not throw, with every event after the number `from`, in order; a query finds those up to it. */
  join(listener: (row: Row) => void): Promise<{ readonly from: number; readonly leave: () => void }>
}

type HubState = { last: number; isReading: boolean; isAsked: boolean; started?: Promise<() => void> }

const rowsOfHub = 500
/** A lost announcement delays events by at most this. */
const checkEveryMs = 2_000

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

  /** @returns whether there are more events, or an announcement arrived meanwhile */
  async function readOnce(): Promise<boolean> {
    state.isAsked = false
    const rows = await store.read(() => readEvents({ filter: {}, after: state.last, limit: rowsOfHub }))
    for (const row of rows) {
      state.last = int(row, 'id')
      for (const listener of followers) listener(row)
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

  function leave(listener: (row: Row) => void): void {
    followers.delete(listener)
    if (followers.size > 0) return
    void state.started?.then((stop) => stop())
    delete state.started
  }

  return {
    async join(listener) {
      followers.add(listener)
      try {
        state.started ??= start()
        await state.started
      } catch (error) {
        leave(listener)
        throw error
      }
      return { from: state.last, leave: () => leave(listener) }
    },
  }
}

function listenTo(store: Store, read: () => void): () => void {
  const stop = store.listen('events', read)
  const state: { timer?: ReturnType<typeof setTimeout> } = {}
  const later = () => {
    state.timer = setTimeout(() => {
      read()
      later()
    }, checkEveryMs)
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

/** Names columns and the values that they must have. */
type EventFilter = { readonly type?: string; readonly task_id?: number; readonly run_id?: number; readonly agent_id?: string }

/**
 * Restricts an agent to its own events and a run to those of its task; an operator sees all. @returns undefined when the caller asks for what
 * it may not see @throws PlaneRefusal forbidden for the shared secret
 */
function filterOf(caller: Caller, query: Omit<EventQuery, 'after' | 'before' | 'limit'>): EventFilter | undefined {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read events; use an operator token or an agent key')
  const asked = {
    type: query.type,
    task_id: query.task_id === undefined ? undefined : numberOf(query.task_id),
    run_id: query.run_id === undefined ? undefined : numberOf(query.run_id),
    agent_id: query.agent_id,
  }
  if (caller.kind === 'operator') return asked
  if (caller.kind === 'agent')
    return asked.agent_id === undefined || asked.agent_id === caller.id ? { ...asked, agent_id: caller.id } : undefined
  const own = numberOf(caller.taskId)
  return asked.task_id === undefined || asked.task_id === own ? { ...asked, task_id: own } : undefined
}

function matches(filter: EventFilter, row: Row): boolean {
  if (filter.type !== undefined && row.type !== filter.type) return false
  if (filter.agent_id !== undefined && row.agent_id !== filter.agent_id) return false
  if (filter.task_id !== undefined && intOrNull(row, 'task_id') !== filter.task_id) return false
  return filter.run_id === undefined || intOrNull(row, 'run_id') === filter.run_id
}

type EventRange = { readonly filter: EventFilter; readonly after?: number; readonly before?: number; readonly limit: number }

/** Reads oldest first with `after`, otherwise newest first. */
export function* readEvents({ filter, after, before, limit }: EventRange): Command<readonly Row[]> {
  const { type, task_id, run_id, agent_id } = filter
  const [where, params] = whereOf([
    ['type = ?', type],
    ['task_id = ?', task_id],
    ['run_id = ?', run_id],
    ['agent_id = ?', agent_id],
    // The index of the task finds the events of a run, so they need none of their own.
    ['task_id = (SELECT task_id FROM runs WHERE id = ?)', task_id === undefined ? run_id : undefined],
    ['id > ?', after],
    ['id < ?', before],
  ])
  return yield [`SELECT * FROM events ${where} ORDER BY id ${after === undefined ? 'DESC' : 'ASC'} LIMIT ?`, [...params, limit]]
}

function* lastEventId(): Command<number> {
  return yield* queryNumber('SELECT MAX(id) AS value FROM events')
}

/** Describes an event for the transaction of the command that causes it. */
type NewEvent = {
  /** `entity.happening`, for example `task.completed`. */
  readonly type: string
  /** The result of `signatureOf(caller)`, or the part of the control plane that acts by itself, for example `clock`. */
  readonly actor: string
  readonly taskId?: number | null | undefined
  readonly runId?: number | null | undefined
  readonly agentId?: string | null | undefined
  readonly role?: string | null | undefined
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

/** `eventsLast` takes this text out of the command, and writes all its events together before the commit. */
const WRITE_EVENT = '-- event'
const columns = 'id, at, type, actor, task_id, run_id, agent_id, role, data'

export function* recordEvent(
  context: Pick<PlaneContext, 'store' | 'now'>,
  { type, actor, taskId = null, runId = null, agentId = null, role = null, data = {} }: NewEvent,
): Command<void> {
  yield [WRITE_EVENT, [context.now(), type, actor, taskId, runId, agentId, role, JSON.stringify(data)]]
  yield* context.store.announce('events')
}

/** This many rows stay within the 32,766 parameters that SQLite takes. */
const rowsPerInsert = 500

/** Writes events and assigns their ids under one row lock. `events` holds the parameters that came with `WRITE_EVENT`. */
function* writeEvents(events: readonly (readonly Param[])[]): Command<void> {
  for (let at = 0; at < events.length; at += rowsPerInsert) {
    const some = events.slice(at, at + rowsPerInsert)
    yield* reserveNumber('events', some.length)
    yield insertOf(some)
  }
}

const rowMarks = `(${lastNumber.events} - ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const insertOne = `INSERT INTO events (${columns}) VALUES ${rowMarks}`

function insertOf(events: readonly (readonly Param[])[]): Statement {
  const others = events.slice(1).map(() => `, ${rowMarks}`)
  return [`${insertOne}${others.join('')}`, events.flatMap((event, at) => [events.length - at - 1, ...event])]
}

/**
 * Makes a store that writes the events of a command at its end: each daemon locks the one row that assigns their ids only for the commit and
 * after all its other locks, so that two commands do not wait for each other.
 */
export function eventsLast(store: Store): Store {
  return {
    ...store,
    write: (command, batchKey) => store.write(() => withEventsLast(command), batchKey),
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
