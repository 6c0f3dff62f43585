/** Defines what the steps of one task share, and the two things that each of them may do last: note the session and give the lease back. */

import { errorText } from '../../../kit/errors.ts'
import type { RotatingLog } from '../../../service/rotating-log.ts'
import type { Approval } from '../../contract/activity-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Claim, Task } from '../../contract/task-shapes.ts'
import type { ChildRecords } from '../child/child-records.ts'
import type { Confinement } from '../child/confinement-way.ts'
import type { SessionLog } from '../session-log.ts'
import type { MatchedSkill, WorkerEnd, WorkerOptions } from '../worker-options.ts'
import type { RunPort } from '../worker-port.ts'
import { isLost, persistently } from './asks.ts'
import type { RunLog } from './child-log.ts'
import type { Lease } from './held-lease.ts'

export type Performing = {
  readonly options: WorkerOptions
  readonly claim: Claim
  /** When the claim was sent, by the monotonic clock. */
  readonly claimedAt: number
  readonly confinement: Confinement
  readonly records: ChildRecords
  readonly sessions: SessionLog
  readonly agentLog: Pick<RotatingLog, 'write'>
  /** Aborted when the worker was asked to stop: nothing new begins. */
  readonly closing: AbortSignal
  /** Aborted when the worker's time for this run is over. */
  readonly stopping: AbortSignal
  /** Aborted when it has to end at once. */
  readonly leaving: AbortSignal
  /** Aborted when nobody waits for the control plane any more. */
  readonly gone: AbortSignal
}

/** A claim that is being carried out. */
export type Held = Performing & {
  readonly run: RunPort
  readonly lease: Lease
  readonly log: RunLog
  /** From then on the log goes under the agent's own key. */
  readonly ended: { is: boolean }
}

/** Holds what is known before there is a copy of the workspace. */
export type Prepared = Held & {
  readonly skill: MatchedSkill | undefined
  /** All of this task, in any state. */
  readonly approvals: readonly Approval[]
  readonly beganAt: number
}

export type Performance = Prepared & { readonly prompt: string }

/** How long the end of a run waits for its log to arrive, in ms. */
export const logMs = 10_000

export type SessionNote = { readonly skill: string; readonly outcome: string; readonly tokens: number }

/** The seed's line, in the file and at the control plane. A file that cannot be written does not undo the run. */
export async function noteSession({ options, claim, sessions }: Performing, { skill, outcome, tokens }: SessionNote): Promise<void> {
  const timestamp = `${new Date(options.clock.now()).toISOString().slice(0, 19)}Z`
  const line = { timestamp, task: claim.task.title, skill, outcome: outcome.slice(0, 500), tokens_used: tokens }
  try {
    sessions.append(line)
  } catch (error) {
    options.say(`the session file was not written: ${errorText(error)}`)
  }
  await options.port.addSession(options.agentId, line).catch(() => undefined)
}

type Release = Parameters<RunPort['release']>[1]

/** Gives the lease back. @returns `end`, or what `ends` makes of the task; `lost` when there was no lease to give back */
export async function releaseTask(
  held: Held,
  request: Release,
  end: WorkerEnd,
  ends: (task: Task) => WorkerEnd | Promise<WorkerEnd> = () => end,
): Promise<WorkerEnd> {
  const { options, claim, run, lease, log } = held
  await log.close(Math.min(logMs, lease.remaining()))
  if (!lease.isHeld()) return 'lost'
  try {
    const asking = { while: lease.isHeld, random: options.clock.random }
    return await ends(await persistently(asking, () => released(run, claim.task.task_id, request)))
  } catch (error) {
    const isGone = isLost(error) || !lease.isHeld()
    if (isGone) return 'lost'
    options.say(`${claim.task.task_id}: the lease could not be given back: ${errorText(error)}`)
    return end
  }
}

/**
 * A number of tokens that the control plane does not believe fails the task with that sentence: another attempt would spend as much again, or
 * lie again.
 */
async function released(run: RunPort, taskId: string, request: Release): Promise<Task> {
  try {
    return await run.release(taskId, request)
  } catch (error) {
    const isRefused = error instanceof PlaneRefusal && error.code === 'bad_request'
    if (!isRefused || request.tokens_used === undefined) throw error
    return await run.release(taskId, { outcome: request.outcome === 'retry' ? 'failed' : request.outcome, error: error.message })
  }
}
