/** Finds the next task of a role for one agent: an index range on each side, however many tasks there are. */

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
  return `FROM tasks WHERE id IN ((${next('agent_id IS NULL', labels)}), (${next('agent_id = ?', labels)})) ORDER BY queue_at, id LIMIT 1`
}

/** Most claims ask for no labels: their text is made once, because making it takes as long as a small statement. */
export function perLabels(text: (labels: readonly string[]) => string): (labels: readonly string[]) => string {
  const plain = text([])
  return (labels) => (labels.length === 0 ? plain : text(labels))
}

export function candidateParams({ role, agentId, labels }: Wanted): readonly Param[] {
  const filter = labelParams(distinct(labels))
  return [role, ...filter, role, agentId, ...filter]
}

/** A task has each label once. */
function distinct(labels: readonly string[]): readonly string[] {
  return [...new Set(labels)]
}

/** The literals are those of the indexes' conditions, so that both engines use them. Delayed tasks have a larger queue_at. */
function next(whose: string, labels: readonly string[]): string {
  return `SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND ${whose} AND queue_at < 1000000000000000${labelFilter(labels)}
    ORDER BY queue_at, id LIMIT 1`
}

function labelFilter(labels: readonly string[]): string {
  if (labels.length === 0) return ''
  return ` AND (SELECT count(*) FROM labels WHERE labels.task_id = tasks.id AND label IN (${marks(labels)})) = ?`
}

function labelParams(labels: readonly string[]): (string | number)[] {
  return labels.length === 0 ? [] : [...labels, labels.length]
}
