/** The fence: lets a run write to its task only while its lease is in force, and names the ends of leases. */

import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Beside, Command, Row } from '../../contract/store-port.ts'
import { idOf, int, numberOf, type PlaneContext } from '../command.ts'
import { lockTask } from './task-change.ts'

/**
 * Locks the task of a run token. An expired lease is lost even when nobody has taken the task since: whoever could not beat in time may
 * have been stopped for any length of time, and must not act on what it knew before.
 * @throws PlaneRefusal forbidden for another task or credential, lease_lost
 */
export function* lockLease(context: PlaneContext, caller: Caller, id: string): Command<Row> {
  const run = holderOf(caller, numberOf(id))
  const row = yield* lockTask(context, numberOf(id))
  assertLease(context, row, run)
  return row
}

type RunCaller = Extract<Caller, { kind: 'run' }>

function holderOf(caller: Caller, number: number): RunCaller {
  if (caller.kind !== 'run') throw new PlaneRefusal('forbidden', 'only the run token of the task may do this')
  if (numberOf(caller.taskId) === number) return caller
  throw new PlaneRefusal('forbidden', `this run token is for ${caller.taskId}, not for ${idOf('TASK', number)}`)
}

/** As `lockLease`, for a row that is locked already. */
export function assertLease(context: PlaneContext, row: Row, caller: Caller): void {
  if (!hasLease(context, row, holderOf(caller, int(row, 'id')))) throw leaseLost(row)
}

/** What a run writes to its task needs nobody else's: runs of different tasks write beside each other. */
export function besideRuns(caller: Caller): Beside | undefined {
  return caller.kind === 'run' ? { kind: 'run', key: caller.taskId } : undefined
}

/** The number of a run belongs to one claim only, and so to one token. */
function hasLease(context: PlaneContext, row: Row, caller: RunCaller): boolean {
  return isLeased(context, row) && int(row, 'run_id') === numberOf(caller.runId) && int(row, 'attempt') === caller.attempt
}

export function isLeased(context: PlaneContext, row: Row): boolean {
  return row.status === 'running' && int(row, 'available_at') > context.now()
}

export function leaseLost(row: Row): PlaneRefusal {
  const status = row.status === 'running' ? 'another run has it, or the lease expired' : `it is ${row.status}`
  return new PlaneRefusal('lease_lost', `the lease of ${idOf('TASK', int(row, 'id'))} is lost: ${status}; stop working on it`, {
    status: row.status,
    attempt: row.attempt,
  })
}
