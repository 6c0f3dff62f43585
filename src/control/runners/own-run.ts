/** Defines what the own runner is given for one task, and what it returns. */

import type { ActivityPost, ActivityReply } from '../contract/activity-shapes.ts'
import type { Approval, ApprovedOperation } from '../contract/approval-shapes.ts'
import type { Reservation, ReserveRequest, Settled, SettleRequest } from '../contract/fleet-shapes.ts'
import type { Beat, Task } from '../contract/task-shapes.ts'

/** The control plane with the token of the run. */
export type OwnRunPort = {
  beat(taskId: string): Promise<Beat>
  reserve(request: ReserveRequest): Promise<Reservation>
  settle(request: SettleRequest): Promise<Settled>
  /** The approvals of the task, in any state. */
  approvals(taskId: string): Promise<readonly Approval[]>
  useApproval(id: string, digest: string): Promise<ApprovedOperation>
  activity(post: ActivityPost): Promise<ActivityReply>
}

export type OwnRunRequest = {
  readonly task: Task
  readonly prompt: string
  readonly skillIndex: string
  /** The private copy of the workspace. */
  readonly workspace: string
  /** The conversation of the run before, which waited for somebody and goes on; absent: a new one. */
  readonly session?: string
  readonly run: OwnRunPort
  /** Receives what happens, as text for the log of the run. */
  readonly log: (text: string) => void
  readonly signal: AbortSignal
}

/** `waiting`: an operator has to approve something first. `blocked`: the budget is spent. */
export type OwnRunResult = {
  readonly ending: 'completed' | 'failed' | 'waiting' | 'blocked'
  readonly output: string
  readonly tokens: number
  readonly model: string
  /** Ids of the receipts of its tool calls. */
  readonly receipts: readonly string[]
  /** The conversation. */
  readonly session: string
  /** Id of the run in the worker's own home. */
  readonly homeRun?: string
}

/** Rejects when the conversation cannot be opened. */
export type OwnRun = (request: OwnRunRequest) => Promise<OwnRunResult>
