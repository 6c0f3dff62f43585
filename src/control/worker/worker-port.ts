/**
 * Defines what a worker needs of the control plane. `src/control/client` offers it over HTTP; a test may offer it over a plane in its own
 * process. Every method rejects with PlaneRefusal when the control plane refuses, and with another Error when it cannot be reached.
 */

import type { ActivityPost, ActivityReply, SeedState } from '../contract/activity-shapes.ts'
import type { RunPlane } from '../contract/plane.ts'
import type { Run, SessionLine } from '../contract/run-shapes.ts'
import type { Claim, ClaimRequest, ReleaseRequest, Task } from '../contract/task-shapes.ts'
import type { OwnRunPort } from '../runners/runner.ts'

export type Artifact = {
  readonly name: string
  /** SHA-256 of the bytes, in hex. */
  readonly digest: string
  /** Base64; at most 1 MiB of bytes. */
  readonly body: string
}

/** Lists what an agent's own key may do. */
export type WorkerPort = {
  state(signal: AbortSignal): Promise<SeedState>
  /** The worker says what it is, and how its receipts stand. */
  report(agentId: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<unknown>
  /** Waits up to `wait_ms`; undefined when there was no task. */
  claim(request: ClaimRequest, signal: AbortSignal): Promise<Claim | undefined>
  task(id: string): Promise<Task>
  /** For what no run says: that a task has failed for good. */
  activity(post: ActivityPost): Promise<ActivityReply>
  addSession(agentId: string, line: SessionLine): Promise<unknown>
  /** How a run of this agent ended, or `running`. */
  runState(runId: string): Promise<Run['state']>
  /** For runs of this agent that have ended: the rest of the log, what came out, and later what a person did with the changes. */
  appendLog: RunPort['appendLog']
  deliver: RunPort['deliver']
  putArtifact: RunPort['putArtifact']
  /** The same control plane with the token of one run. */
  run(token: string): RunPort
}

/** Lists what the token of one run may do. After the lease is lost each of these is refused. */
export type RunPort = OwnRunPort & {
  release(taskId: string, request: ReleaseRequest): Promise<Task>
  appendLog(runId: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  deliver(runId: string, delivery: Parameters<RunPlane['deliver']>[2]): Promise<unknown>
  putArtifact(runId: string, artifact: Artifact): Promise<unknown>
}
