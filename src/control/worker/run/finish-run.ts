/**
 * Ends a task: reports what the run produced (change set, artifacts, manifest, and at last the seed's post that ends the task), notes the session,
 * and gives the lease back. Defines what the steps of one task share.
 */

import { errorText } from '../../../kit/errors.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { RotatingLog } from '../../../service/rotating-log.ts'
import type { Approval } from '../../contract/activity-shapes.ts'
import { isPassing, PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Run, RunFacts } from '../../contract/run-shapes.ts'
import type { Claim, Task } from '../../contract/task-shapes.ts'
import type { Confinement } from '../child/child-confinement.ts'
import type { ChildRecords } from '../child/child-processes.ts'
import type { SessionLog } from '../session-log.ts'
import type { MatchedSkill, RunChanges, WorkerEnd, WorkerOptions, WorkspaceCopy } from '../worker-options.ts'
import type { Artifact, RunPort } from '../worker-port.ts'
import { isLost, type RetryOptions, retryWhile } from '../worker-port.ts'
import type { RunLog } from './child-log.ts'
import type { Lease } from './held-lease.ts'
import type { RunOutcome } from './run-child.ts'

export type TaskContext = {
  readonly options: WorkerOptions
  readonly claim: Claim
  /** Holds when the claim was sent, by the monotonic clock. */
  readonly claimedAt: number
  readonly confinement: Confinement
  readonly records: ChildRecords
  readonly sessions: SessionLog
  readonly agentLog: Pick<RotatingLog, 'write'>
  /** Aborts when the worker was asked to stop: nothing new begins. */
  readonly closing: AbortSignal
  /** Aborts when the worker's time for this run is over. */
  readonly stopping: AbortSignal
  /** Aborts when the run must end at once. */
  readonly leaving: AbortSignal
  /** Aborts when the worker does not wait for the control plane any more. */
  readonly disconnected: AbortSignal
}

/** Describes a task whose lease is ours. */
export type LeasedTask = TaskContext & {
  readonly run: RunPort
  readonly lease: Lease
  readonly log: RunLog
  /** Is set when the run has ended: the log is then sent with the agent's own key. */
  readonly ended: { is: boolean }
}

/** Adds what is read before the workspace is copied. */
export type PreparedTask = LeasedTask & {
  readonly skill: MatchedSkill | undefined
  /** Lists all approvals of this task, in any state. */
  readonly approvals: readonly Approval[]
  readonly beganAt: number
}

export type TaskExecution = PreparedTask & { readonly prompt: string }

const mostArtifact = 1024 * 1024
const stateMs = 10_000

/** Repeats a request as long as the lease is held, and says so. */
export function retryOf({ options, lease }: Pick<LeasedTask, 'options' | 'lease'>): RetryOptions {
  return { while: lease.isHeld, random: options.clock.random, say: options.say }
}

/** Delivers the result of a run that completed while its lease is ours. */
export async function deliverRun(execution: TaskExecution, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  const { run, lease, log } = execution
  await log.close(Math.min(logMs, lease.remaining() / 3))
  const changes = await copy.keep()
  const retry = retryOf(execution)
  try {
    await retryWhile(retry, () => deliver(execution, run, { changes, outcome }))
    await retryWhile(retry, () => run.activity(completionOf(execution, outcome, changes)))
  } catch (error) {
    return await finishUndelivered(execution, { copy, outcome, changes, error })
  }
  await noteCompletion(execution, outcome, changes)
  return 'completed'
}

/** Reads the state of the run, because an answer may have been lost, or the runner has ended the task itself. */
async function finishUndelivered(
  execution: TaskExecution,
  { copy, outcome, changes, error }: { copy: WorkspaceCopy; outcome: RunOutcome; changes: RunChanges; error: unknown },
): Promise<WorkerEnd> {
  if (isLost(error) || isPassing(error)) return finishWithoutLease(execution, copy, outcome, changes)
  await copy.forget(changes)
  execution.options.say(`${execution.claim.task.task_id}: the result was not accepted: ${errorText(error)}`)
  return releaseTask(execution, { outcome: 'retry', error: errorText(error).slice(0, 8_000), tokens_used: outcome.tokens }, 'failed')
}

/**
 * Ends a run whose lease is not ours any more. The runner may have ended the task itself with the token of the run: it completed it, or it waits
 * for an operator. Then its result counts. Otherwise everything that it made is dropped.
 */
export async function finishWithoutLease(
  execution: TaskExecution,
  copy: WorkspaceCopy,
  outcome: RunOutcome,
  existing?: RunChanges,
): Promise<WorkerEnd> {
  const { options, log, ended } = execution
  const state = await stateOf(execution)
  if (state !== 'completed' && state !== 'waiting') return dropResult(execution, copy, { state, existing })
  ended.is = true
  await log.close(logMs)
  if (state === 'waiting') {
    if (existing) await copy.forget(existing)
    else await copy.park({ runner: execution.skill?.command ? 'command' : options.runner.name, session: outcome.session })
    await noteSession(execution, { skill: skillOf(execution, outcome), outcome: 'waiting', tokens: outcome.tokens })
    return 'waiting'
  }
  const changes = existing ?? (await copy.keep())
  await deliver(execution, options.port, { changes, outcome }).catch((error: unknown) =>
    options.say(`${execution.claim.run_id}: the report of the run did not arrive: ${errorText(error)}`),
  )
  await noteCompletion(execution, outcome, changes)
  return 'completed'
}

async function dropResult(
  { options, claim, lease }: TaskExecution,
  copy: WorkspaceCopy,
  { state, existing }: { readonly state: Run['state'] | undefined; readonly existing: RunChanges | undefined },
): Promise<WorkerEnd> {
  if (existing) await copy.forget(existing)
  options.say(`${claim.task.task_id}: ${lease.news()?.why ?? 'the lease is lost'}; the result of the run was dropped`)
  return state === 'cancelled' ? 'cancelled' : 'lost'
}

/** Returns the state of the run at the control plane; undefined when it cannot be asked. */
export async function stateOf({ options, claim, disconnected }: TaskExecution): Promise<Run['state'] | undefined> {
  const until = options.clock.monotonic() + stateMs
  const retry = { while: () => options.clock.monotonic() < until && !disconnected.aborted, random: options.clock.random }
  return retryWhile(retry, () => options.port.runState(claim.run_id)).catch(() => undefined)
}

type RunResult = { readonly changes: RunChanges; readonly outcome: RunOutcome }

async function deliver(
  execution: TaskExecution,
  port: Pick<RunPort, 'putArtifact' | 'deliver'>,
  { changes, outcome }: RunResult,
): Promise<void> {
  const { claim, options } = execution
  const artifacts = [...artifact('output.txt', outcome.output), ...artifact('changes.patch', changes.patch ?? '')]
  for (const artifact of artifacts) await port.putArtifact(claim.run_id, artifact)
  const manifest = await options.manifest?.(factsOf(execution, { changes, outcome, artifacts }))
  const skill = skillOf(execution, outcome)
  await port.deliver(claim.run_id, { changes: changes.state, skill, manifest })
}

function artifact(name: string, text: string): readonly Artifact[] {
  if (text === '') return []
  const bytes = Buffer.from(text).subarray(0, mostArtifact)
  return [{ name, digest: sha256(bytes), body: bytes.toString('base64') }]
}

function factsOf(
  execution: TaskExecution,
  { changes, outcome, artifacts }: RunResult & { readonly artifacts: readonly Artifact[] },
): RunFacts {
  const { options, claim, prompt, beganAt, log } = execution
  const { runner } = options
  const version = runner.name === 'own' ? undefined : runner.version
  const { count, head } = options.receipts?.() ?? {}
  const { exitCode, receipts } = outcome
  return {
    ...{ task: claim.task, runId: claim.run_id, attempt: claim.attempt, agentId: options.agentId, role: options.role },
    runner: { name: runner.name, version, model: outcome.model || undefined },
    prompt: { text: prompt, digest: sha256(prompt) },
    ...{ skill: skillOf(execution, outcome), status: 'success', output: outcome.output, tokensReported: outcome.tokens },
    beganAt: new Date(beganAt).toISOString(),
    endedAt: new Date(options.clock.now()).toISOString(),
    ...{ confinement: outcome.confinement, exitCode, log: log.summary() },
    changes: { state: changes.state, digest: changes.digest, summary: changes.summary },
    artifacts: artifacts.map(({ name, digest, body }) => ({ name, digest, bytes: Buffer.from(body, 'base64').length })),
    receipts: receipts && {
      ids: receipts,
      count: typeof count === 'number' ? count : undefined,
      head: typeof head === 'string' ? head : undefined,
    },
  }
}

function completionOf(execution: TaskExecution, outcome: RunOutcome, changes: RunChanges) {
  const { options, claim } = execution
  const waiting = changes.state === 'waiting' ? `\n\n[changes wait for a review: ${changes.summary ?? changes.id}]` : ''
  return {
    event_type: 'task_completed',
    task_id: claim.task.task_id,
    agent_id: options.agentId,
    skill_executed: skillOf(execution, outcome),
    result: { status: 'success', output: `${outcome.output}${waiting}`, tokens_used: outcome.tokens },
  } as const
}

function skillOf({ skill }: TaskExecution, outcome: RunOutcome): string {
  return outcome.skill?.slice(0, 200) ?? skill?.name ?? 'none'
}

async function noteCompletion(execution: TaskExecution, outcome: RunOutcome, changes: RunChanges): Promise<void> {
  const { options, claim } = execution
  await noteSession(execution, {
    skill: skillOf(execution, outcome),
    outcome: outcome.output.split('\n')[0] ?? 'success',
    tokens: outcome.tokens,
  })
  if (changes.state === 'waiting')
    options.say(
      `${claim.task.task_id}: changes wait for a review (${changes.summary ?? changes.id}): braidclaw changes show ${claim.run_id}`,
    )
}

/** Limits how long the end of a run waits for its log to arrive, in ms. */
export const logMs = 10_000

/** Writes the seed's line into the session file and to the control plane. A file that cannot be written does not undo the run. */
export async function noteSession(
  { options, claim, sessions }: TaskContext,
  { skill, outcome, tokens }: { readonly skill: string; readonly outcome: string; readonly tokens: number },
): Promise<void> {
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
  leased: LeasedTask,
  request: Release,
  end: WorkerEnd,
  ends: (task: Task) => WorkerEnd | Promise<WorkerEnd> = () => end,
): Promise<WorkerEnd> {
  const { options, claim, run, lease, log } = leased
  await log.close(Math.min(logMs, lease.remaining() / 3))
  if (!lease.isHeld()) return 'lost'
  try {
    return await ends(await retryWhile(retryOf(leased), () => release(run, claim.task.task_id, request)))
  } catch (error) {
    const isGone = isLost(error) || !lease.isHeld()
    if (isGone) return 'lost'
    options.say(`${claim.task.task_id}: the lease could not be given back: ${errorText(error)}`)
    return end
  }
}

/**
 * Releases the task. When the control plane refuses the number of tokens, the task fails with that message: another attempt would spend as much
 * again, or report a wrong number again.
 */
async function release(run: RunPort, taskId: string, request: Release): Promise<Task> {
  try {
    return await run.release(taskId, request)
  } catch (error) {
    const isRefused = error instanceof PlaneRefusal && error.code === 'bad_request'
    if (!isRefused || request.tokens_used === undefined) throw error
    return await run.release(taskId, { outcome: request.outcome === 'retry' ? 'failed' : request.outcome, error: error.message })
  }
}
