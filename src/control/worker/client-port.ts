/** Offers the control plane to a worker over HTTP: the client with the agent's own key, and one with the token of each run. */

import { type ControlClient, createControlClient } from '../client/control-client.ts'
import type { TransportOptions } from '../client/transport.ts'
import type { RunPort, WorkerPort } from './worker-port.ts'

/** `token` gives the agent's key. */
export function clientPort(options: TransportOptions): WorkerPort {
  const client = createControlClient(options)
  const { seed, fleet, tasks, runs } = client
  return {
    state: seed.state,
    report: fleet.report,
    claim: tasks.claim,
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
