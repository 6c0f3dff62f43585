/** Gives a question its one answer: an operator's decision, or the end of its time. The task that asked goes on in the same transaction. */

import type { Approval, DecisionRequest } from '../../contract/approval-shapes.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, int, intOrNull, object, text, textOrNull } from '../row.ts'
import { wakeTask } from '../tasks/end-task.ts'
import { approvalOf, lockApproval } from './approval-row.ts'

const stateOf = { approve: 'approved', reject: 'rejected', revise: 'revise' } as const

export type Deciding = { readonly caller: Caller; readonly id: string; readonly request: DecisionRequest }

/** @throws PlaneRefusal not_found; already_decided with the first answer in `details.approval`, also when its time has passed */
export function* decideApproval(context: PlaneContext, { caller, id, request }: Deciding): Command<Approval | PlaneRefusal> {
  const row = yield* lockApproval(context, id)
  if (row.state !== 'pending') return alreadyDecided(row)
  if (isOver(context, row)) return alreadyDecided(yield* expireRow(context, row))
  const { decision, note } = request
  return approvalOf(yield* answer(context, row, { state: stateOf[decision], note: note || null, actor: signatureOf(caller) }))
}

function alreadyDecided(row: Row): PlaneRefusal {
  const approval = approvalOf(row)
  const by = approval.decided_by === null ? '' : ` by ${approval.decided_by}`
  return new PlaneRefusal('already_decided', `${approval.approval_id} is ${approval.state}${by}; the first answer stands`, { approval })
}

export function isOver(context: Pick<PlaneContext, 'now'>, row: Row): boolean {
  return int(row, 'expires_at') <= context.now()
}

/** Unanswered questions become expired, which is a refusal; what was approved and never used may not be used any more. */
export function* expireRow(context: PlaneContext, row: Row): Command<Row> {
  const wasApproved = row.state === 'approved'
  const note = wasApproved ? textOrNull(row, 'note') : `nobody answered within ${context.options.approvalHours} h`
  return yield* answer(context, row, { state: 'expired', note, actor: 'clock' })
}

type Answer = { readonly state: Approval['state']; readonly note: string | null; readonly actor: string }

function* answer(context: PlaneContext, row: Row, { state, note, actor }: Answer): Command<Row> {
  const answered = (yield* changeState(context, row, { state, note, actor })) ?? row
  yield* recordAnswer(context, answered, actor)
  const taskId = intOrNull(row, 'task_id')
  // Without a run somebody only named the task: it waits for nothing, or for another answer.
  if (taskId === null || row.run_id === null) return answered
  yield* tellTask(context, { taskId, row: answered })
  yield* wakeTask(context, taskId, actor)
  return answered
}

/** An approval may be used for as long after the decision as the question may wait for it. */
function* changeState(context: PlaneContext, row: Row, { state, note, actor }: Answer): Command<Row | undefined> {
  const now = context.now()
  const wasApproved = row.state === 'approved'
  const decided = wasApproved ? [textOrNull(row, 'decided_by'), intOrNull(row, 'decided_at')] : [actor, now]
  const expiresAt = state === 'approved' ? now + context.options.approvalHours * 3_600_000 : int(row, 'expires_at')
  return yield* first('UPDATE approvals SET state = ?, note = ?, decided_by = ?, decided_at = ?, expires_at = ? WHERE id = ? RETURNING *', [
    state,
    note,
    ...decided,
    expiresAt,
    int(row, 'id'),
  ])
}

function* recordAnswer(context: PlaneContext, row: Row, actor: string): Command<void> {
  yield* recordEvent(context, {
    type: `approval.${text(row, 'state')}`,
    actor,
    taskId: intOrNull(row, 'task_id'),
    runId: intOrNull(row, 'run_id'),
    agentId: text(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    data: { approval_id: idOf('APPR', int(row, 'id')), operation: text(row, 'operation'), note: textOrNull(row, 'note') },
  })
}

/** The run that gets the task next finds the answers in its context: `approvals: {"APPR-001": {state, operation, note}}`. */
function* tellTask(context: PlaneContext, { taskId, row }: { readonly taskId: number; readonly row: Row }): Command<void> {
  const task = yield* first('SELECT context FROM tasks WHERE id = ?', [taskId])
  if (!task) return
  const known = object(task, 'context')
  const before = typeof known.approvals === 'object' && known.approvals !== null ? known.approvals : {}
  const answered = { state: text(row, 'state'), operation: text(row, 'operation'), note: textOrNull(row, 'note') }
  const approvals = { ...before, [idOf('APPR', int(row, 'id'))]: answered }
  yield [
    'UPDATE tasks SET context = ?, updated_at = ?, version = version + 1 WHERE id = ?',
    [JSON.stringify({ ...known, approvals }), context.now(), taskId],
  ]
}
