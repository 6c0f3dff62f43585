/** Lists tasks page by page, with how many there are in each status. */

import type { Caller } from '../../contract/caller.ts'
import type { TaskPage } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import type { Task, TaskQuery } from '../../contract/task-shapes.ts'
import { idOf, int, marks, numberOf, text } from '../command.ts'
import { readTask, taskOf } from './task-change.ts'

type Filter = { readonly where: readonly string[]; readonly params: readonly Param[] }

/** Lists tasks. An agent sees those of its role and those for itself. @throws PlaneRefusal forbidden */
export function* listTasks(caller: Caller, query: TaskQuery): Command<TaskPage> {
  const scope = scopeOf(caller, query)
  const { rows, next } = yield* page(allOf(scope, filterOf(query)), query)
  return { tasks: yield* withDetails(rows), next: next === undefined ? null : idOf('TASK', next), counts: yield* countByStatus(scope) }
}

/** Returns the filters that the counts have in common: those that a reader of the page seldom changes. */
function scopeOf(caller: Caller, { role, agent_id }: TaskQuery): Filter {
  const requested = allOf(equals('role', role), equals('agent_id', agent_id))
  if (caller.kind === 'operator') return requested
  if (caller.kind !== 'agent') throw new PlaneRefusal('forbidden', 'only an operator or an agent with its own key may list tasks')
  if (role !== undefined && role !== caller.role)
    throw new PlaneRefusal('forbidden', `agent "${caller.id}" lists tasks of "${caller.role}" only`)
  return allOf(requested, { where: ['(role = ? OR agent_id = ?)'], params: [caller.role, caller.id] })
}

/** Returns the conditions that need no reading of texts. */
function filterOf({ status, blocked_reason, open, label, parent_task_id }: TaskQuery): Filter {
  const ended = "('completed', 'failed', 'dead', 'cancelled')"
  return [
    equals('status', status),
    equals('blocked_reason', blocked_reason),
    open === undefined ? noFilter : { where: [`status ${open ? 'NOT IN' : 'IN'} ${ended}`], params: [] },
    label === undefined ? noFilter : { where: ['id IN (SELECT task_id FROM labels WHERE label = ?)'], params: [label] },
    parent_task_id === undefined ? noFilter : { where: ['parent_id = ?'], params: [numberOf(parent_task_id)] },
  ].reduce(allOf, noFilter)
}

const noFilter: Filter = { where: [], params: [] }

function allOf(one: Filter, other: Filter): Filter {
  return { where: [...one.where, ...other.where], params: [...one.params, ...other.params] }
}

function equals(column: string, value: string | undefined): Filter {
  return value === undefined ? noFilter : { where: [`${column} = ?`], params: [value] }
}

/** `next` is the number of the last task that this page searched, when more follow. */
type RowPage = { readonly rows: readonly Row[]; readonly next?: number }

/** A list shows these columns when the reader needs no long texts. */
const briefColumns = `id, title, '' AS description, role, agent_id, priority, status, blocked_reason, labels, '{}' AS context, created_at, updated_at,
  created_by, version, attempt, max_attempts, available_at, run_id, parent_id, budget_tokens, tokens_used, cancel_requested, NULL AS result, error,
  ended_at, check_command`
const size = 'LENGTH(description) + LENGTH(context) + COALESCE(LENGTH(result), 0)'

/**
 * Reads one row more than requested, which tells whether there is a next page. A search may return fewer than requested, or none, and still
 * have a next page.
 */
function* page(filter: Filter, query: TaskQuery): Command<RowPage> {
  const order = query.order === 'queue' ? 'queue_at, id' : 'id DESC'
  const behind = allOf(filter, yield* afterOf(query))
  const end = query.q ? yield* endOfSearch(behind, order) : undefined
  const { where, params } = [behind, query.q ? textFilter(query.q) : noFilter, end ? upTo(end, query) : noFilter].reduce(allOf)
  const columns = query.brief ? briefColumns : `id, ${size} AS size`
  const listed = yield [`SELECT ${columns} FROM tasks${conditionOf(where)} ORDER BY ${order} LIMIT ?`, [...params, query.limit + 1]]
  const rows = query.brief ? listed.slice(0, query.limit) : yield* wholeRows(listed.slice(0, query.limit))
  const last = rows.length < listed.length ? rows.at(-1) : end
  return last ? { rows, next: int(last, 'id') } : { rows }
}

/** One page of a search reads the texts of this many tasks: a search for an absent text must not read a million at once. */
const mostSearched = 10_000

/** Returns the last task whose texts this page reads, when more follow. */
function* endOfSearch({ where, params }: Filter, order: string): Command<Row | undefined> {
  const behind = `SELECT id, queue_at FROM tasks${conditionOf(where)} ORDER BY ${order} LIMIT 2 OFFSET ${mostSearched - 1}`
  const [last, more] = yield [behind, params]
  return more && last
}

function upTo(end: Row, { order }: TaskQuery): Filter {
  const [id, place] = [int(end, 'id'), int(end, 'queue_at')]
  if (order === 'newest') return { where: ['id >= ?'], params: [id] }
  return { where: ['(queue_at < ? OR (queue_at = ? AND id <= ?))'], params: [place, place, id] }
}

function textFilter(q: string): Filter {
  const like = `%${q.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  return { where: [`(lower(title) LIKE ? ESCAPE '\\' OR lower(description) LIKE ? ESCAPE '\\')`], params: [like, like] }
}

function conditionOf(where: readonly string[]): string {
  return where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`
}

/** A page with more characters ends early: an agent may report a million with each task. */
const mostCharacters = 2_097_152

/** Reads the first rows that are not too large together, at least one. */
function* wholeRows(listed: readonly Row[]): Command<readonly Row[]> {
  let characters = 0
  const ids = listed.map((row) => int(row, 'id'))
  const over = listed.findIndex((row, at) => {
    characters += int(row, 'size')
    return at > 0 && characters > mostCharacters
  })
  const fitting = over < 0 ? ids : ids.slice(0, over)
  if (fitting.length === 0) return []
  const rows = yield [`SELECT * FROM tasks WHERE id IN (${marks(fitting)})`, fitting]
  const byId = new Map(rows.map((row) => [int(row, 'id'), row]))
  return fitting.map((id) => byId.get(id)).filter((row) => row !== undefined)
}

function* afterOf({ after, order }: TaskQuery): Command<Filter> {
  if (after === undefined) return noFilter
  if (order === 'newest') return { where: ['id < ?'], params: [numberOf(after)] }
  const place = int(yield* readTask(after), 'queue_at')
  return { where: ['(queue_at > ? OR (queue_at = ? AND id > ?))'], params: [place, place, numberOf(after)] }
}

function* withDetails(rows: readonly Row[]): Command<readonly Task[]> {
  if (rows.length === 0) return []
  const ids = rows.map((row) => int(row, 'id'))
  const needs = yield [`SELECT task_id, needs FROM dependencies WHERE task_id IN (${marks(ids)}) ORDER BY needs`, ids]
  const runs = yield [`SELECT task_id, agent_id FROM runs WHERE state = 'running' AND task_id IN (${marks(ids)})`, ids]
  const agents = new Map(runs.map((run) => [int(run, 'task_id'), text(run, 'agent_id')]))
  const needsOf = Map.groupBy(needs, (need) => int(need, 'task_id'))
  return rows.map((row) =>
    taskOf(
      row,
      needsOf.get(int(row, 'id'))?.map((need) => int(need, 'needs')),
      agents.get(int(row, 'id')) ?? null,
    ),
  )
}

function* countByStatus({ where, params }: Filter): Command<Readonly<Record<string, number>>> {
  const rows = yield [`SELECT status, count(*) AS value FROM tasks${conditionOf(where)} GROUP BY status`, params]
  return Object.fromEntries(rows.map((row) => [text(row, 'status'), int(row, 'value')]))
}
