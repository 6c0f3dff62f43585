/**
 * Defines what a worker needs of the control plane, and offers it over HTTP; a test may offer it over a plane in its own process. Every method rejects with PlaneRefusal when the control plane refuses, and with another Error when it cannot be reached.
 */

import { sleep } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { type ControlClient, createControlClient } from '../client/control-client.ts'
import type { TransportOptions } from '../client/transport.ts'
import type { ActivityPost, ActivityReply, SeedState } from '../contract/activity-shapes.ts'
import type { RunPlane } from '../contract/plane.ts'
import { countRefusals, PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Run, SessionLine } from '../contract/run-shapes.ts'
import { type Claim, type ClaimRequest, type ReleaseRequest, runId, type Task, taskId } from '../contract/task-shapes.ts'
import type { OwnRunPort } from '../runners/runner.ts'

export type Artifact = Parameters<RunPlane['putArtifact']>[2]

/** Lists what an agent's own key may do. */
export type WorkerPort = {
  state(signal: AbortSignal): Promise<SeedState>
  /** Reports what the worker is, and the state of its receipts. */
  report(agentId: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<unknown>
  /** Waits up to `wait_ms`; undefined when there was no task. */
  claim(request: ClaimRequest, signal: AbortSignal): Promise<Claim | undefined>
  task(id: string): Promise<Task>
  /** Reports what no run can report: that a task has failed for good. */
  activity(post: ActivityPost): Promise<ActivityReply>
  addSession(agentId: string, line: SessionLine): Promise<unknown>
  /** Returns how a run of this agent ended, or `running`. */
  runState(runId: string): Promise<Run['state']>
  /** These deliver for runs of this agent that have ended: the rest of the log, the results, and later what a person did with the changes. */
  appendLog: RunPort['appendLog']
  deliver: RunPort['deliver']
  putArtifact: RunPort['putArtifact']
  /** Returns the same control plane with the token of one run. */
  run(token: string): RunPort
}

/** Lists what the token of one run may do. After the lease is lost each of these is refused. */
export type RunPort = OwnRunPort & {
  release(taskId: string, request: ReleaseRequest): Promise<Task>
  appendLog(runId: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  deliver(runId: string, delivery: Parameters<RunPlane['deliver']>[2]): Promise<unknown>
  putArtifact(runId: string, artifact: Artifact): Promise<unknown>
}

/** Offers the control plane over HTTP: with the agent's own key, which `token` gives, and with the token of each run. */
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
    // Others repeat a call for longer; the second try here has the same Idempotency-Key, so that a lost answer does not count twice.
    run: (token) => runPort(createControlClient({ ...options, token: () => token, attempts: 2 })),
  }
}

/** Checks the ids, because folders of this machine are named after them and a false control plane must not choose any path. @throws PlaneRefusal */
function checked(claim: Claim | undefined): Claim | undefined {
  if (claim === undefined || (runId.safeParse(claim.run_id).success && taskId.safeParse(claim.task?.task_id).success)) return claim
  const names = JSON.stringify([claim.run_id, claim.task?.task_id]).slice(0, 200)
  throw new PlaneRefusal('conflict', `the control plane sent a task with the ids ${names}, which are not valid; it was not started`)
}

function runPort({ tasks, runs, budget, approvals, activity }: ControlClient): RunPort {
  return {
    async beat(id) {
      const beat = await tasks.beat(id)
      if (typeof beat?.lease_until === 'string') return beat
      throw new PlaneRefusal('unavailable', 'a heartbeat was answered with something else than a lease')
    },
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

export type RetryOptions = {
  /** Tells whether the answer still matters. */
  readonly while: () => boolean
  readonly random: () => number
  readonly signal?: AbortSignal
  /** Shows once why the request is repeated. */
  readonly say?: (line: string) => void
}

const firstMs = 200
const longestMs = 5_000

/** @throws the refusal of the control plane, and the last failure when the answer does not matter any more */
export async function retryWhile<T>(options: RetryOptions, ask: () => Promise<T>): Promise<T> {
  const refusals = countRefusals()
  for (let wait = firstMs; ; wait = Math.min(longestMs, wait * 2)) {
    try {
      return await ask()
    } catch (error) {
      if (refusals.isFinal(error) || !options.while()) throw error
      if (wait === firstMs) options.say?.(`${errorText(error)}; trying again`)
      await sleep(wait * (0.5 + options.random() / 2), options.signal ?? new AbortController().signal)
      if (!options.while()) throw error
    }
  }
}

/** Tells whether the answer says that this run has no lease any more. */
export function isLost(error: unknown): boolean {
  return error instanceof PlaneRefusal && ['lease_lost', 'unauthorized', 'forbidden', 'not_found'].includes(error.code)
}
