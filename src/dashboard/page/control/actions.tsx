/** Does what the person asks of tasks, approvals, agents and limits, and says when it was done, or why not. */

import type { Approval, DecisionRequest } from '../../../control/contract/activity-shapes.ts'
import type { Agent, Budget, BudgetPatch, NewAgentKey } from '../../../control/contract/fleet-shapes.ts'
import type { ResolveRequest, Task } from '../../../control/contract/task-shapes.ts'
import { whole } from '../parts/fields.tsx'
import { attempt, doing } from '../state.ts'
import { agents, budget } from './control-state.ts'
import { plane } from './net/plane-live.ts'
import { confirmed, showOnce } from './parts/ask.tsx'
import { tokensOf } from './parts/bits.tsx'
import { visible } from './parts/plain-text.tsx'

const decided = { approve: 'Approved', reject: 'Denied', revise: 'Sent back' } as const

export function decide({ approval_id, operation }: Approval, decision: DecisionRequest['decision'], note = ''): Promise<boolean> {
  return doing(`${decided[decision]}: ${shortOf(operation)}`, () =>
    plane('POST', `approvals/${approval_id}/decision`, { decision, note: note || undefined }),
  )
}

export function retry({ task_id, title }: Task): Promise<boolean> {
  return doing(`Back in the queue: ${shortOf(title)}`, () => plane('POST', `tasks/${task_id}/retry`, { note: '' }))
}

export async function cancel({ task_id, title, status }: Task): Promise<boolean> {
  const body = (
    <p>
      {task_id}: {visible(title)}. {status === 'running' && 'Its run is stopped.'}
    </p>
  )
  if (!(await confirmed({ title: 'Cancel this task?', body, act: 'Cancel the task', isDangerous: true }))) return false
  return doing(`Cancelled: ${shortOf(title)}`, () => plane('POST', `tasks/${task_id}/cancel`, { note: '' }))
}

const outcomes = { done: 'Taken as done', redo: 'Runs again', give_up: 'Given up' } as const

/** Without a key: every effect in doubt. */
export function resolve({ task_id, title }: Task, outcome: ResolveRequest['outcome'], key?: string): Promise<boolean> {
  return doing(`${outcomes[outcome]}: ${shortOf(title)}`, () => plane('POST', `tasks/${task_id}/resolve`, { outcome, key }))
}

export function pauseOrResume({ id, paused }: Pick<Agent, 'id' | 'paused'>): Promise<boolean> {
  return paused
    ? doing(`Resumed: ${id}`, () => plane('POST', agentPath(id, 'resume'), {}))
    : doing(`Paused: ${id}`, () => plane('POST', agentPath(id, 'pause'), { reason: 'paused in the dashboard' }))
}

export function wake(id: string): Promise<boolean> {
  return doing(`Woken: ${id}`, () => plane('POST', agentPath(id, 'wake'), {}))
}

/** Returns the command that starts the worker of an agent; its key is in a file there, or in CONTROLPLANE_API_KEY. */
export function workerCommand({ id, role }: Pick<Agent, 'id' | 'role'>): string {
  return `braidclaw control worker --agent ${id}${role === id ? '' : ` --role ${role}`} --key-file ${id}.key`
}

/** Makes a key that nobody can see again, and says what it is for. */
export async function showNewKey(agent: Pick<Agent, 'id' | 'role'>, path: 'keys' | 'keys/rotate'): Promise<void> {
  const { key } = await plane<NewAgentKey>('POST', agentPath(agent.id, path), {})
  const use = (
    <>
      Keep it in a file that only you can read, and start the worker: <code>{workerCommand(agent)}</code> (or give it as
      CONTROLPLANE_API_KEY).
    </>
  )
  await showOnce(`The new key of ${agent.id}`, key, use)
}

export async function rotateKey(id: string): Promise<boolean> {
  const role = agents.value.find((each) => each.id === id)?.role ?? id
  const body = <p>All keys of {id} end at once, and its worker needs the new one. Running tasks keep their leases.</p>
  if (!(await confirmed({ title: 'Rotate the key?', body, act: 'Rotate the key' }))) return false
  return attempt(() => showNewKey({ id, role }, 'keys/rotate'))
}

export function agentPath(id: string, rest = ''): string {
  return `agents/${encodeURIComponent(id)}${rest === '' ? '' : `/${rest}`}`
}

function shortOf(text: string): string {
  const shown = visible(text).replaceAll(/\s+/g, ' ')
  return shown.length > 80 ? `${[...shown].slice(0, 79).join('')}…` : shown
}

/** A limit that is used up: of a role, or of all of them. */
export type SpentLimit = { readonly role?: string; readonly limit: number; readonly spent: number }

/** Changes a limit of a day after a question. `role`: absent for the limit of all. `after`: null takes the limit away. */
export async function changeLimit(now: Budget, role: string | undefined, after: number | null): Promise<boolean> {
  const name = role ?? 'All roles'
  const before = (role === undefined ? now.daily_tokens : now.roles[role]?.limit) ?? null
  if (before === after) return false
  const isRaised = after === null || (before !== null && after > before)
  const spent = role === undefined ? now.spent_today : (now.roles[role]?.spent ?? 0)
  const body = (
    <>
      <p>
        {name}: from <strong>{tokensOf(before)}</strong> to <strong>{tokensOf(after)}</strong> a day. Spent today: {whole(spent)}.
      </p>
      {after !== null && after <= spent && <p class="over">That much is spent already: the agents stop at once.</p>}
    </>
  )
  const act = isRaised ? 'Raise the limit' : 'Lower the limit'
  if (!(await confirmed({ title: `${act}?`, body, act, isDangerous: !isRaised }))) return false
  return doing(`${name}: ${tokensOf(after)} tokens a day`, async () => {
    budget.value = await plane<Budget>('PUT', 'budget', patchOf(now, role, after))
  })
}

function patchOf({ allocation }: Budget, role: string | undefined, tokens: number | null): BudgetPatch {
  if (role === undefined) return { daily_tokens: tokens }
  const { [role]: _, ...others } = allocation
  return { allocation: tokens === null ? others : { ...others, [role]: tokens } }
}

/** A limit of 0 is used up on purpose. */
export function spentLimits({ daily_tokens, spent_today, roles }: Budget): readonly SpentLimit[] {
  const all = [
    { limit: daily_tokens, spent: spent_today },
    ...Object.entries(roles).map(([role, { limit, spent }]) => ({ role, limit, spent })),
  ]
  return all.flatMap(({ limit, ...each }) => (limit !== null && limit > 0 && each.spent >= limit ? [{ ...each, limit }] : []))
}

/** Half a day more than was spent, in round numbers. */
export function raised({ limit, spent }: SpentLimit): number {
  const least = spent + limit / 2
  const step = 10 ** Math.max(0, Math.floor(Math.log10(least)) - 1)
  return Math.min(1e12, Math.ceil(least / step) * step)
}
