/** Keeps the labels of tasks with their places in the queue, so that a claim with labels finds its task in an index. */

import type { Command, Row } from '../../contract/store-port.ts'
import { int, marks, text } from '../row.ts'

/** The queue is the role, or "ROLE AGENT" for a task of one agent alone; a task that is not pending stands in none. */
const place = `UPDATE labels SET queue_at = (SELECT queue_at FROM tasks WHERE tasks.id = labels.task_id),
  queue = (SELECT CASE WHEN status <> 'pending' THEN NULL WHEN agent_id IS NULL THEN role ELSE role || ' ' || agent_id END
    FROM tasks WHERE tasks.id = labels.task_id)`

/** For a task that has none yet: its row says where it stands. */
export function* keepLabels(task: Row, labels: readonly string[]): Command<void> {
  if (labels.length === 0) return
  for (const label of new Set(labels)) yield ['INSERT INTO labels (task_id, label) VALUES (?, ?)', [int(task, 'id'), label]]
  yield* moveLabels([task])
}

/** After the status, the role, the agent or the place in the queue of tasks has changed; `tasks`: their columns id and labels. */
export function* moveLabels(tasks: readonly Row[]): Command<void> {
  const ids = tasks.filter((task) => text(task, 'labels') !== '[]').map((task) => int(task, 'id'))
  if (ids.length > 0) yield [`${place} WHERE task_id IN (${marks(ids)})`, ids]
}

export function* replaceLabels(task: Row, labels: readonly string[]): Command<void> {
  yield ['DELETE FROM labels WHERE task_id = ?', [int(task, 'id')]]
  yield* keepLabels(task, labels)
}
