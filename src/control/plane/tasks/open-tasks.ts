/** Limits how many open tasks one agent may have created, so that one that loops, or that a text misleads, cannot fill the board. */

import type { Caller } from '../../contract/caller.ts'
import { signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { amount } from '../row.ts'

export const usualOpenTasks = 1_000

/** The conditions of the index `tasks_open_of_creators`; counts no further than the limit, and only within that index. */
const openOf = "ended_at IS NULL AND substr(created_by, 1, 6) IN ('agent ', 'shared') AND created_by = ?"

/** Operators are exempt; a run creates only escalations, which have a limit of their own. Creates of one agent take turns (`besideCreates`), so the count is exact. @throws PlaneRefusal too_many */
export function* assertFewOpenTasks({ options }: PlaneContext, caller: Caller, more: number): Command<void> {
  if (caller.kind !== 'agent' && caller.kind !== 'seed') return
  const limit = options.openTasksOfAgent ?? usualOpenTasks
  const counted = `SELECT COUNT(*) AS value FROM (SELECT 1 FROM tasks WHERE ${openOf} LIMIT ?) AS counted`
  const open = yield* amount(counted, [signatureOf(caller), limit])
  if (open + more <= limit) return
  const asked = more === 1 ? 'it may have no more' : `${more} more are above that`
  throw new PlaneRefusal(
    'too_many',
    `${signatureOf(caller)} has created ${open} tasks that have not ended, of ${limit} at a time (CONTROLPLANE_AGENT_OPEN_TASKS); ${asked}: wait until some have ended`,
    { open, limit, retry_after_ms: 60_000 },
  )
}
