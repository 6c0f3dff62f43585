/** Lets an approved operation happen once. */

import type { ApprovedOperation } from '../../contract/approval-shapes.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { int, intOrNull, object, text, textOrNull } from '../row.ts'
import { lockLease } from '../tasks/lease.ts'
import { isOver } from './answer-approval.ts'
import { lockApproval } from './approval-row.ts'

export type Using = { readonly caller: Caller; readonly id: string; readonly digest: string | undefined }

/** @throws PlaneRefusal not_found, forbidden, lease_lost; conflict when it may not be used (again), or for another operation */
export function* useApproval(context: PlaneContext, { caller, id, digest }: Using): Command<ApprovedOperation> {
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  const row = yield* lockApproval(context, id)
  assertOwn(caller, row)
  assertUsable(context, row)
  if (digest !== undefined && digest !== row.digest)
    throw new PlaneRefusal(
      'conflict',
      `${id} permits "${text(row, 'operation')}", and not what is about to be done; ask for a new approval`,
      {
        approved_digest: row.digest,
      },
    )
  const now = context.now()
  yield ["UPDATE approvals SET state = 'used', used_at = ?, used_by = ? WHERE id = ?", [now, signatureOf(caller), int(row, 'id')]]
  yield* recordUse(context, { row, caller })
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    operation: text(row, 'operation'),
    details: object(row, 'details'),
    digest: text(row, 'digest'),
    note: textOrNull(row, 'note'),
  }
}

/** A run of the task that asked, whichever attempt; without a task, the agent that asked. */
function assertOwn(caller: Caller, row: Row): void {
  const taskId = intOrNull(row, 'task_id')
  const isOwnTask = taskId === null || (caller.kind === 'run' && caller.taskId === idOf('TASK', taskId))
  const isOwnAgent = (caller.kind === 'run' || caller.kind === 'agent') && caller.id === row.agent_id
  const isAllowed = taskId === null ? isOwnAgent : isOwnTask
  if (!isAllowed)
    throw new PlaneRefusal('conflict', `${idOf('APPR', int(row, 'id'))} was given to ${ownerOf(row)}, not to ${signatureOf(caller)}`)
}

function ownerOf(row: Row): string {
  const taskId = intOrNull(row, 'task_id')
  return taskId === null ? `agent ${text(row, 'agent_id')}` : `the runs of ${idOf('TASK', taskId)}`
}

function assertUsable(context: PlaneContext, row: Row): void {
  const id = idOf('APPR', int(row, 'id'))
  if (row.state === 'used') throw new PlaneRefusal('conflict', `${id} was used already, by ${text(row, 'used_by')}; ask for a new approval`)
  if (row.state !== 'approved')
    throw new PlaneRefusal('conflict', `${id} is ${text(row, 'state')}, so it permits nothing`, { state: row.state })
  if (isOver(context, row)) throw new PlaneRefusal('conflict', `${id} expired; ask for a new approval`, { state: 'expired' })
}

function* recordUse(context: PlaneContext, { row, caller }: { readonly row: Row; readonly caller: Caller }): Command<void> {
  yield* recordEvent(context, {
    type: 'approval.used',
    actor: signatureOf(caller),
    taskId: intOrNull(row, 'task_id'),
    agentId: text(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    data: { approval_id: idOf('APPR', int(row, 'id')), operation: text(row, 'operation') },
  })
}
