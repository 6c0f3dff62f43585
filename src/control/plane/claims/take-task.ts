/** Takes the next task of a role out of the queue, with a lease. */

import type { Command, Row } from '../../contract/store-port.ts'
import type { ClaimRequest } from '../../contract/task-shapes.ts'
import { type PlaneContext, take, taken } from '../context.ts'
import { first, int } from '../row.ts'
import { blockTask } from '../tasks/end-task.ts'
import { moveLabels } from '../tasks/task-labels.ts'
import { candidate, candidateParams, findCandidate, type Wanted, withLabels } from './find-candidate.ts'
import { nextDue, sweep } from './sweep.ts'

export type Lease = { readonly request: ClaimRequest; readonly digest: string }

const takeCandidate = `UPDATE tasks SET status = 'running', attempt = attempt + 1, run_id = ${taken.runs}, available_at = ?, lease_digest = ?, lease_ms = ?,
  cancel_requested = 0, error = NULL, version = version + 1, updated_at = ?
  WHERE id = (SELECT id ${candidate}) AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens)
  RETURNING *, (SELECT COUNT(*) FROM dependencies WHERE task_id = tasks.id) AS needs`

/**
 * Leases the first task, unless its own budget is spent: one statement finds and changes it, so claims need no turns. @returns undefined also
 * when that task has no budget left
 */
export function* takeBest({ now, options }: PlaneContext, { request, digest }: Lease): Command<Row | undefined> {
  const { role, agent_id: agentId, labels, lease_s: seconds } = request
  const leaseMs = Math.min(seconds ?? options.leaseSeconds, options.leaseSeconds) * 1_000
  yield* take('runs')
  const params = [now() + leaseMs, digest, leaseMs, now(), ...candidateParams({ role, agentId, labels })]
  const leased = yield* first(withLabels(takeCandidate, labels), params)
  if (leased) yield* moveLabels([leased])
  return leased
}

/** An empty queue may still have expired leases, and tasks whose time has come since the last tick. */
export function* takeAfterSweep(context: PlaneContext, lease: Lease): Command<Row | undefined> {
  const due = yield* nextDue()
  const isDue = due !== null && due <= context.now()
  if (!isDue && !(yield* findCandidate(wanted(lease.request)))) return undefined
  yield* context.store.alone()
  if (isDue) yield* sweep(context)
  return yield* takeAffordable(context, lease)
}

/** Tasks that one claim puts aside: the next claim goes on with the others. */
const mostAside = 100

/** A task whose own budget is spent waits under that name, and the next one is looked at. */
function* takeAffordable(context: PlaneContext, lease: Lease): Command<Row | undefined> {
  for (let aside = 0; aside < mostAside; aside += 1) {
    const task = yield* findCandidate(wanted(lease.request))
    const leased = task && (yield* takeBest(context, lease))
    if (!task || leased) return leased
    const error = `its own budget of ${int(task, 'budget_tokens')} tokens is spent`
    yield* blockTask(context, int(task, 'id'), 'budget_blocked', null, { error })
  }
  return undefined
}

function wanted({ role, agent_id: agentId, labels }: ClaimRequest): Wanted {
  return { role, agentId, labels }
}
