/** Who may read and create tasks. The server checks routes; these checks make the plane safe without it. */

import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Row } from '../../contract/store-port.ts'
import { idOf, int } from '../command.ts'

/** An agent reads the tasks of its role and its own; a run reads its own task. @throws PlaneRefusal */
export function requireReadable(caller: Caller, row: Row): void {
  if (caller.kind === 'operator') return
  const id = idOf('TASK', int(row, 'id'))
  if (caller.kind === 'run' && caller.taskId === id) return
  if (caller.kind === 'agent' && (row.role === caller.role || row.agent_id === caller.id || row.created_by === `agent ${caller.id}`)) return
  throw new PlaneRefusal('forbidden', `${id} is not a task of yours`)
}

/** Agents create tasks for any role, so that they can hand work on; a run token and the shared secret create none. */
export function requireCreator(caller: Caller): void {
  if (caller.kind === 'operator' || caller.kind === 'agent') return
  throw new PlaneRefusal('forbidden', 'only an operator or an agent with its own key may create tasks')
}
