/** Keeps the session lines of agents: what each did last, in the seed's form. */

import type { Caller } from '../../contract/caller.ts'
import type { SessionLine } from '../../contract/run-shapes.ts'
import { sessionLine } from '../../contract/run-shapes.ts'
import type { Command } from '../../contract/store-port.ts'
import { nextId, numberOf, type PlaneContext } from '../context.ts'
import { text } from '../row.ts'
import { lockLease } from '../tasks/lease.ts'

export type NewLine = { readonly caller: Caller; readonly agentId: string; readonly line: SessionLine }

/** Its own file has all of them; here the last ones answer what an agent did lately, however much it writes. */
const mostOfAgent = 1_000

/** Of an agent the last 1,000 lines are kept. The next run reads them, so a run adds none once its lease is over. @throws PlaneRefusal lease_lost */
export function* addSessionLine(context: PlaneContext, { caller, agentId, line }: NewLine): Command<void> {
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  const { timestamp, task, skill, outcome, tokens_used } = line
  const run = caller.kind === 'run' ? numberOf(caller.runId) : null
  const id = yield* nextId('sessions')
  yield [
    'INSERT INTO sessions (id, agent_id, run_id, at, line) VALUES (?, ?, ?, ?, ?)',
    [id, agentId, run, context.now(), JSON.stringify({ timestamp, task, skill, outcome, tokens_used })],
  ]
  yield [
    'DELETE FROM sessions WHERE agent_id = ? AND id <= (SELECT id FROM sessions WHERE agent_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)',
    [agentId, agentId, mostOfAgent],
  ]
}

/** The last `limit`, oldest first. */
export function* readSessionLines(agentId: string, limit: number): Command<readonly SessionLine[]> {
  const rows = yield ['SELECT line FROM sessions WHERE agent_id = ? ORDER BY id DESC LIMIT ?', [agentId, limit]]
  return rows.map((row) => sessionLine.parse(JSON.parse(text(row, 'line')))).reverse()
}
