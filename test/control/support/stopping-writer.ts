/** A daemon that is stopped while it holds the writer's lock: claims a task, writes its completion and stops itself before the commit. */

import { numberOf } from '../../../src/control/plane/command.ts'
import { completeTask } from '../../../src/control/plane/tasks/end-task.ts'
import { lockTask } from '../../../src/control/plane/tasks/task-change.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { refusalOf, runCaller, taskPlane } from './task-plane.ts'

const [url = '', agent = ''] = process.argv.slice(2)
const store = await openPostgres({ url, log: () => {} })
const plane = await taskPlane(store, { now: Date.now })
const claim = await plane.mustClaim(agent, { lease_s: 1 })
const state = { hasStopped: false }

const outcome = await refusalOf(
  plane.context.store.write(function* () {
    const task = yield* lockTask(plane.context, numberOf(claim.task.task_id))
    const caller = runCaller(claim, agent)
    yield* completeTask(plane.context, { caller, task, status: 'success', output: 'late', tokensUsed: 0 })
    // The connection was lost meanwhile, so the command runs again.
    if (!state.hasStopped) process.kill(process.pid, 'SIGSTOP')
    state.hasStopped = true
  }),
)
console.log(outcome)
await store.close()
