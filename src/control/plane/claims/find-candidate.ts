/** Finds the next task of a role for one agent: an index range on each side, however many tasks there are and whatever labels they have. */

import type { Command, Param, Row } from '../../contract/store-port.ts'
import { first, marks } from '../row.ts'

export type Wanted = { readonly role: string; readonly agentId: string; readonly labels: readonly string[] }

/** The literals are those of the indexes' conditions, so that both engines use them. Delayed tasks have a larger queue_at. */
const isDue = 'queue_at < 1000000000000000'
const inRole = "SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND"
const order = 'ORDER BY queue_at, id LIMIT 1'

/**
 * Of the tasks that anyone in the role may take, and those for this agent alone, the one that has waited longest. `SELECT id` before it and the
 * parameters of `candidateParams` make an expression of it.
 */
export const candidate = `FROM tasks WHERE id IN ((${inRole} agent_id IS NULL AND ${isDue} ${order}), (${inRole} agent_id = ? AND ${isDue} ${order})) ${order}`

export function* findCandidate({ role, agentId, labels }: Wanted): Command<Row | undefined> {
  return yield* first(withLabels(`SELECT id, budget_tokens ${candidate}`, labels), candidateParams({ role, agentId, labels }))
}

/** Returns a text that contains `candidate` for a claim that asks for these labels. Most ask for none, and a text that stays one is found faster. */
export function withLabels(text: string, asked: readonly string[]): string {
  if (asked.length === 0) return text
  const one = labelled(distinct(asked))
  return text.replace(candidate, () => `FROM tasks WHERE id IN ((${one}), (${one})) ${order}`)
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

/**
 * Reads what has the first label, in the order of the queue; CROSS JOIN keeps SQLite from beginning with the tasks. The row of the task
 * decides: another claim of the same moment may have taken it.
 */
function labelled([, ...others]: readonly string[]): string {
  const rest = `(SELECT count(*) FROM labels AS more WHERE more.task_id = place.task_id AND more.label IN (${marks(others)})) = ?`
  return `SELECT tasks.id FROM labels AS place CROSS JOIN tasks WHERE tasks.id = place.task_id AND tasks.status = 'pending' AND place.label = ?
    AND place.queue = ? AND place.${isDue}${others.length === 0 ? '' : ` AND ${rest}`}
    ORDER BY place.queue_at, place.task_id LIMIT 1`
}

function labelledParams([label = '', ...others]: readonly string[], queue: string): readonly Param[] {
  return [label, queue, ...(others.length === 0 ? [] : [...others, others.length])]
}
