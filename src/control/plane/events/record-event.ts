/** Writes one event into the transaction of the command that caused it. */

import type { Command, Param, Statement, Store } from '../../contract/store-port.ts'
import { type PlaneContext, take, taken } from '../command.ts'

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
const rowsAtOnce = 500

/** Writes events whose ids are handed out now, in one row lock. `events` are the parameters that came with `WRITE_EVENT`. */
function* writeEvents(events: readonly (readonly Param[])[]): Command<void> {
  for (let at = 0; at < events.length; at += rowsAtOnce) {
    const some = events.slice(at, at + rowsAtOnce)
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
