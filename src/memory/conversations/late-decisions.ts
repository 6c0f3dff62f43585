/** Tells the model what became of changes that waited for a yes when their call ended, because its result still says that they wait. */

import type { Message } from '../../runtime/port.ts'
import type { Approval, Approvals } from '../approval-table.ts'
import type { Store } from '../store.ts'

/** `at`: when it was decided, in milliseconds since 1970. */
export type LateDecision = { readonly at: number; readonly message: Message }

/** Reads by the primary key: a run without such changes costs one look-up. The second condition: the call ended, and nobody was asked. */
const select = `SELECT id FROM approvals
   WHERE id > 'changes:' || ?1 || '/' AND id < 'changes:' || ?1 || '0' AND decided_by IS NOT 'approval.nobody'
   AND (state IN ('used', 'denied') OR (state = 'open' AND expires <= ?2)) AND NOT EXISTS (SELECT 1 FROM applying WHERE applying.id = approvals.id)
   AND EXISTS (SELECT 1 FROM journal WHERE run_id = ?1 AND type = 'drop' AND json_extract(body, '$.id') = call_id
     AND json_extract(body, '$.by') = 'approval.nobody')`

/** @returns what was decided about changes of that run after their calls had ended, also that nobody decided in time */
export function lateDecisions(store: Store, approvals: Pick<Approvals, 'get'>, runId: string, now: number): readonly LateDecision[] {
  const rows = store
    .sql<{ id: string }, [string, number]>(select)
    .all(runId, now)
    .flatMap(({ id }) => approvals.get(id) ?? [])
    .filter(({ state }) => state !== 'altered')
  return rows.map((row) => ({ at: row.decidedAt ?? row.expires, message: { role: 'user', content: lineOf(row) } }))
}

function lineOf({ callId, summary, state, decidedBy, note }: Approval): string {
  const what = `the changes of ${callId} (${summary})`
  const said = note === null ? '' : `: ${note}`
  if (state === 'used') return `[BraidClaw: since then ${decidedBy} allowed ${what}${said}. They were applied to the workspace]`
  const why = state === 'open' ? 'nobody answered in time' : `${decidedBy}${said === '' ? ' said no' : said}`
  return `[BraidClaw: since then ${what} were dropped, not applied: ${why}]`
}
