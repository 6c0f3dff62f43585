/** What the person does to tasks, approvals and agents; each is told when it was done, and why when it was not. */

import type { Approval, DecisionRequest } from '../../../control/contract/approval-shapes.ts'
import type { Agent, NewAgentKey } from '../../../control/contract/fleet-shapes.ts'
import type { ResolveRequest, Task } from '../../../control/contract/task-shapes.ts'
import { attempt, notice } from '../state.ts'
import { agents } from './control-state.ts'
import { plane } from './net/plane.ts'
import { confirmed, showOnce } from './parts/ask.tsx'
import { visible } from './parts/plain-text.tsx'

/** Runs an action and says that it was done. */
export async function doing(done: string, action: () => Promise<unknown>): Promise<boolean> {
  const succeeded = await attempt(action)
  if (succeeded) notice.value = { text: done }
  return succeeded
}

const decided = { approve: 'Approved', reject: 'Denied', revise: 'Sent back' } as const

export function decide({ approval_id, operation }: Approval, decision: DecisionRequest['decision'], note = ''): Promise<boolean> {
  return doing(`${decided[decision]}: ${shortOf(operation)}`, () =>
    plane('POST', `approvals/${approval_id}/decision`, { decision, ...(note === '' ? {} : { note }) }),
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
  return doing(`${outcomes[outcome]}: ${shortOf(title)}`, () =>
    plane('POST', `tasks/${task_id}/resolve`, { outcome, ...(key === undefined ? {} : { key }) }),
  )
}

export function pauseOrResume({ id, paused }: Pick<Agent, 'id' | 'paused'>): Promise<boolean> {
  return paused
    ? doing(`Resumed: ${id}`, () => plane('POST', agentPath(id, 'resume'), {}))
    : doing(`Paused: ${id}`, () => plane('POST', agentPath(id, 'pause'), { reason: 'paused in the dashboard' }))
}

export function wake(id: string): Promise<boolean> {
  return doing(`Woken: ${id}`, () => plane('POST', agentPath(id, 'wake'), {}))
}

/** What starts the worker of an agent; its key is in a file there, or in CONTROLPLANE_API_KEY. */
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
