/** Offers the control plane to a worker over HTTP: the client with the agent's own key, and one with the token of each run. */

import { type ControlClient, createControlClient } from '../client/control-client.ts'
import type { TransportOptions } from '../client/transport.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { type Claim, runId, taskId } from '../contract/task-shapes.ts'
import type { RunPort, WorkerPort } from './worker-port.ts'

/** `token` gives the agent's key. */
export function clientPort(options: TransportOptions): WorkerPort {
  const client = createControlClient(options)
  const { seed, fleet, tasks, runs } = client
  return {
    state: seed.state,
    report: fleet.report,
    claim: async (...asked) => checked(await tasks.claim(...asked)),
    task: tasks.get,
    activity: (post) => client.activity(post),
    addSession: runs.addSession,
    runState: async (runId) => (await runs.get(runId)).state,
    appendLog: runs.appendLog,
    deliver: runs.deliver,
    putArtifact: runs.putArtifact,
    // A beat that waits for repetitions would come too late: whoever keeps the lease repeats it.
    run: (token) => runPort(createControlClient({ ...options, token: () => token, attempts: 1 })),
  }
}

/** Folders of this machine are named after the run, so whoever answers in the place of the control plane must not choose any. @throws PlaneRefusal */
function checked(claim: Claim | undefined): Claim | undefined {
  if (claim === undefined || (runId.safeParse(claim.run_id).success && taskId.safeParse(claim.task.task_id).success)) return claim
  const names = JSON.stringify([claim.run_id, claim.task.task_id]).slice(0, 200)
  throw new PlaneRefusal('conflict', `the control plane gave a task with the ids ${names}, which are none; nothing was begun`)
}

function runPort({ tasks, runs, budget, approvals, activity }: ControlClient): RunPort {
  return {
    beat: tasks.beat,
    release: tasks.release,
    activity: (post) => activity(post),
    appendLog: runs.appendLog,
    deliver: runs.deliver,
    putArtifact: runs.putArtifact,
    reserve: budget.reserve,
    settle: budget.settle,
    approvals: async (taskId) => (await approvals.list({ task_id: taskId })).approvals,
    useApproval: approvals.use,
  }
}
