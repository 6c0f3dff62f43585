/** Finds the next task of a role for one agent: an index range on each side, however many tasks there are and whatever labels they have. */

import type { Command, Param, Row } from '../../contract/store-port.ts'
import { first, marks } from '../row.ts'

export type Wanted = { readonly role: string; readonly agentId: string; readonly labels: readonly string[] }

const columns = 'id, budget_tokens'

/** Of the tasks that anyone in the role may take, and those for this agent alone, the one that has waited longest. */
export function* findCandidate({ role, agentId, labels }: Wanted): Command<Row | undefined> {
  return yield* first(`SELECT ${columns} ${candidate(labels)}`, candidateParams({ role, agentId, labels }))
}

/** `SELECT id` before it and the parameters of `candidateParams` make an expression of it. */
export function candidate(asked: readonly string[]): string {
  const labels = distinct(asked)
  const [first, second] = labels.length === 0 ? [anyones, own] : [labelled(labels), labelled(labels)]
  return `FROM tasks WHERE id IN ((${first}), (${second})) ORDER BY queue_at, id LIMIT 1`
}

export function candidateParams({ role, agentId, labels: asked }: Wanted): readonly Param[] {
  const labels = distinct(asked)
  if (labels.length === 0) return [role, role, agentId]
  return [...labelledParams(labels, role), ...labelledParams(labels, `${role} ${agentId}`)]
}

/** A task has each label once. */
function distinct(labels: readonly string[]): readonly string[] {
  return [...new Set(labels)]
}

/** The literals are those of the indexes' conditions, so that both engines use them. Delayed tasks have a larger queue_at. */
const anyones = `SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND agent_id IS NULL AND queue_at < 1000000000000000
  ORDER BY queue_at, id LIMIT 1`
const own = `SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND agent_id = ? AND queue_at < 1000000000000000
  ORDER BY queue_at, id LIMIT 1`

/**
 * Reads what has the first label, in the order of the queue; CROSS JOIN keeps SQLite from beginning with the tasks. The row of the task
 * decides: another claim of the same moment may have taken it.
 */
function labelled([, ...others]: readonly string[]): string {
  const rest = `(SELECT count(*) FROM labels AS more WHERE more.task_id = place.task_id AND more.label IN (${marks(others)})) = ?`
  return `SELECT tasks.id FROM labels AS place CROSS JOIN tasks WHERE tasks.id = place.task_id AND tasks.status = 'pending' AND place.label = ?
    AND place.queue = ? AND place.queue_at < 1000000000000000${others.length === 0 ? '' : ` AND ${rest}`}
    ORDER BY place.queue_at, place.task_id LIMIT 1`
}

function labelledParams([label = '', ...others]: readonly string[], queue: string): readonly Param[] {
  return [label, queue, ...(others.length === 0 ? [] : [...others, others.length])]
}
