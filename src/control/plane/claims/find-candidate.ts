/** Finds the next task of a role for one agent: an index range on each side, however many tasks there are. */

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
export function withLabels(text: string, labels: readonly string[]): string {
  return labels.length === 0 ? text : text.replaceAll(isDue, `${isDue}${labelFilter(distinct(labels))}`)
}

export function candidateParams({ role, agentId, labels }: Wanted): readonly Param[] {
  const filter = labelParams(distinct(labels))
  return [role, ...filter, role, agentId, ...filter]
}

/** A task has each label once. */
function distinct(labels: readonly string[]): readonly string[] {
  return [...new Set(labels)]
}

function labelFilter(labels: readonly string[]): string {
  return ` AND (SELECT count(*) FROM labels WHERE labels.task_id = tasks.id AND label IN (${marks(labels)})) = ?`
}

function labelParams(labels: readonly string[]): (string | number)[] {
  return labels.length === 0 ? [] : [...labels, labels.length]
}
