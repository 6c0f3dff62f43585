/** Reads events, and says which of them a caller may see. */

import type { ControlEvent, EventQuery } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import { amount, idOrNull, int, intOrNull, numberOf, object, text, textOrNull, time } from '../command.ts'

export function eventOf(row: Row): ControlEvent {
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
export type EventFilter = { readonly type?: string; readonly task_id?: number; readonly run_id?: number; readonly agent_id?: string }

export type EventWanted = Pick<EventQuery, 'type' | 'task_id' | 'run_id' | 'agent_id'>

/**
 * An operator sees everything, an agent what happened to itself, a run what happened to its task. Undefined: the caller asks for what it may
 * not see, so nothing matches. @throws PlaneRefusal forbidden for the shared secret
 */
export function filterOf(caller: Caller, wanted: EventWanted): EventFilter | undefined {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read events; use an operator token or an agent key')
  const given = {
    ...(wanted.type === undefined ? {} : { type: wanted.type }),
    ...(wanted.task_id === undefined ? {} : { task_id: numberOf(wanted.task_id) }),
    ...(wanted.run_id === undefined ? {} : { run_id: numberOf(wanted.run_id) }),
    ...(wanted.agent_id === undefined ? {} : { agent_id: wanted.agent_id }),
  }
  if (caller.kind === 'operator') return given
  if (caller.kind === 'agent')
    return given.agent_id === undefined || given.agent_id === caller.id ? { ...given, agent_id: caller.id } : undefined
  const own = numberOf(caller.taskId)
  return given.task_id === undefined || given.task_id === own ? { ...given, task_id: own } : undefined
}

export function matches(filter: EventFilter, row: Row): boolean {
  if (filter.type !== undefined && row.type !== filter.type) return false
  if (filter.agent_id !== undefined && row.agent_id !== filter.agent_id) return false
  if (filter.task_id !== undefined && intOrNull(row, 'task_id') !== filter.task_id) return false
  return filter.run_id === undefined || intOrNull(row, 'run_id') === filter.run_id
}

export type EventRange = { readonly filter: EventFilter; readonly after?: number; readonly before?: number; readonly limit: number }

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

export function* lastEventId(): Command<number> {
  return yield* amount('SELECT MAX(id) AS value FROM events')
}
