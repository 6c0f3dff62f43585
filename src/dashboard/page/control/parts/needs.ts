/** Lists what needs the person, the most urgent first. */

import { computed } from '@preact/signals'
import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { Agent } from '../../../../control/contract/fleet-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { type SpentLimit, spentLimits } from '../actions.tsx'
import { agents, budget, isUnseen, pending, stuck } from '../control-state.ts'

export type Need =
  | { readonly kind: 'approval'; readonly id: string; readonly approval: Approval }
  | { readonly kind: 'spent'; readonly id: string; readonly spent: SpentLimit; readonly tasks: readonly Task[] }
  | { readonly kind: 'unpaid'; readonly id: string; readonly role: string; readonly tasks: readonly Task[] }
  | { readonly kind: 'doubtful' | 'dead'; readonly id: string; readonly task: Task }
  | { readonly kind: 'paused' | 'unseen' | 'working'; readonly id: string; readonly agent: Agent }

export const needs = computed<readonly Need[]>(() => {
  const { doubtful, dead, unpaid } = stuck.value
  const paused = agents.value.filter((agent) => agent.paused)
  const unseen = agents.value.filter((agent) => !agent.paused && isUnseen(agent))
  return [
    ...pending.value.approvals.map((approval): Need => ({ kind: 'approval', id: approval.approval_id, approval })),
    ...usedUp(unpaid),
    ...byRole(unpaid.filter(({ role }) => !isUsedUp(role))),
    ...doubtful.map((task): Need => ({ kind: 'doubtful', id: task.task_id, task })),
    ...dead.map((task): Need => ({ kind: 'dead', id: task.task_id, task })),
    ...paused.map((agent): Need => ({ kind: 'paused', id: agent.id, agent })),
    ...unseen.map((agent): Need => ({ kind: 'unseen', id: agent.id, agent })),
  ]
})

/** Agents that work as they should; below what needs the person. */
export const working = computed<readonly Need[]>(() =>
  agents.value
    .filter((agent) => agent.running.length > 0 && !agent.paused && !isUnseen(agent))
    .map((agent) => ({ kind: 'working', id: agent.id, agent })),
)

/** Somebody paused the agents on purpose, so they do not count. */
export const urgentCount = computed(() => needs.value.filter(({ kind }) => kind !== 'paused').length)

const usedLimits = computed(() => (budget.value ? spentLimits(budget.value) : []))

/** The tasks that wait stand below the limit that they wait for. */
function isUsedUp(role: string): boolean {
  return usedLimits.value.some((limit) => limit.role === undefined || limit.role === role)
}

function usedUp(unpaid: readonly Task[]): readonly Need[] {
  return usedLimits.value.map((spent) => ({
    ...{ kind: 'spent', id: spent.role ?? '*', spent },
    tasks: unpaid.filter(({ role }) => spent.role === undefined || spent.role === role),
  }))
}

function byRole(tasks: readonly Task[]): readonly Need[] {
  return [...Map.groupBy(tasks, ({ role }) => role)].map(([role, of]) => ({ kind: 'unpaid', id: `budget ${role}`, role, tasks: of }))
}
