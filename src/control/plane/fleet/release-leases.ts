/** Takes all leases of an agent back at once: its tasks return to the queue, and its run tokens are worth nothing. */

import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { int } from '../row.ts'
import { requeueTask } from '../tasks/end-task.ts'
import { lockTask } from '../tasks/task-change.ts'

/** The attempts do not count as failures. */
export function* releaseLeases(
  context: PlaneContext,
  { agentId, actor, why }: { readonly agentId: string; readonly actor: string; readonly why: string },
): Command<number> {
  const runs = yield ["SELECT id, task_id FROM runs WHERE agent_id = ? AND state = 'running' ORDER BY task_id", [agentId]]
  let released = 0
  for (const run of runs) {
    const task = yield* lockTask(context, int(run, 'task_id'))
    if (task.status !== 'running' || int(task, 'run_id') !== int(run, 'id')) continue
    const again = { type: 'task.released', actor, availableAt: context.now(), failures: int(task, 'failures'), error: why }
    yield* requeueTask(context, task, { ...again, run: { state: 'released', error: why } })
    released += 1
  }
  return released
}
