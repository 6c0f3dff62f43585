/** Lists the statuses and priorities of tasks for people; the type of the contract says when one is missing. */

import type { Task } from '../../../../control/contract/task-shapes.ts'

const statuses: { readonly [status in Task['status']]: true } = {
  pending: true,
  running: true,
  awaiting_approval: true,
  budget_blocked: true,
  blocked: true,
  dead: true,
  failed: true,
  completed: true,
  cancelled: true,
}
const importance: { readonly [priority in Task['priority']]: true } = { urgent: true, high: true, medium: true, low: true }

/** In the order of the board. */
export const taskStatuses = Object.keys(statuses) as readonly Task['status'][]
export const priorities = Object.keys(importance) as readonly Task['priority'][]

export function hasEnded({ status }: Task): boolean {
  return status === 'completed' || status === 'failed' || status === 'dead' || status === 'cancelled'
}

/** A dead task is put away by it. */
export function canCancel(task: Task): boolean {
  return !hasEnded(task) || task.status === 'dead'
}
