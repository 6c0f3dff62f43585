/**
 * Ends a task: reports what the run produced (change set, artifacts, manifest, and at last the seed's post that ends the task), notes the session,
 * and gives the lease back. Defines what the steps of one task share.
 */

import { errorText } from '../../../kit/errors.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { RotatingLog } from '../../../service/rotating-log.ts'
import type { Approval } from '../../contract/activity-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Run, RunFacts } from '../../contract/run-shapes.ts'
import type { Claim, Task } from '../../contract/task-shapes.ts'
import type { Confinement } from '../child/child-confinement.ts'
import type { ChildRecords } from '../child/child-processes.ts'
import type { SessionLog } from '../session-log.ts'
import type { EarlierRun, KeptSet, MatchedSkill, WorkerEnd, WorkerOptions, WorkspaceCopy } from '../worker-options.ts'
import type { Artifact, RunPort } from '../worker-port.ts'
import type { RunLog } from './child-log.ts'
import type { Lease } from './held-lease.ts'
import { isLost, isPassing, persistently } from './retry-while.ts'
import type { RunOutcome } from './run-child.ts'

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

const mostArtifact = 1024 * 1024
const stateMs = 10_000

/** For a run that completed while its lease is ours. */
export async function deliverRun(performance: Performance, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  const { options, run, lease, log } = performance
  await log.close(Math.min(logMs, lease.remaining()))
  const kept = await copy.keep()
  const asking = { while: lease.isHeld, random: options.clock.random }
  try {
    await persistently(asking, () => deliver(performance, run, { kept, outcome }))
    await persistently(asking, () => run.activity(completionOf(performance, outcome, kept)))
  } catch (error) {
    return await undelivered(performance, { copy, outcome, kept, error })
  }
  await reported(performance, outcome, kept)
  return 'completed'
}

/** An answer may have been lost on its way, or the runner has ended the task itself: the state of the run says so. */
async function undelivered(
  performance: Performance,
  { copy, outcome, kept, error }: { copy: WorkspaceCopy; outcome: RunOutcome; kept: KeptSet; error: unknown },
): Promise<WorkerEnd> {
  if (isLost(error) || isPassing(error)) return finishWithoutLease(performance, copy, outcome, kept)
  await copy.forget(kept)
  performance.options.say(`${performance.claim.task.task_id}: the result was not accepted: ${errorText(error)}`)
  return releaseTask(performance, { outcome: 'retry', error: errorText(error).slice(0, 8_000), tokens_used: outcome.tokens }, 'failed')
}

/**
 * For a run whose lease is not ours any more. The run may have ended under its own token: the runner completed the task itself, or it waits
 * for an operator. Then its result counts. Otherwise everything that it made is dropped.
 */
export async function finishWithoutLease(
  performance: Performance,
  copy: WorkspaceCopy,
  outcome: RunOutcome,
  known?: KeptSet,
): Promise<WorkerEnd> {
  const { options, log, ended } = performance
  const state = await stateOf(performance)
  if (state !== 'completed' && state !== 'waiting') return dropped(performance, copy, { state, known })
  ended.is = true
  await log.close(logMs)
  if (state === 'waiting') {
    if (known) await copy.forget(known)
    else await copy.park(sessionOf(performance, outcome))
    await noteSession(performance, { skill: skillOf(performance, outcome), outcome: 'waiting', tokens: outcome.tokens })
    return 'waiting'
  }
  const kept = known ?? (await copy.keep())
  await deliver(performance, options.port, { kept, outcome }).catch((error: unknown) =>
    options.say(`${performance.claim.run_id}: the report of the run did not arrive: ${errorText(error)}`),
  )
  await reported(performance, outcome, kept)
  return 'completed'
}

function sessionOf({ options, skill }: Performance, { session }: RunOutcome): EarlierRun {
  return { runner: skill?.command ? 'command' : options.runner.name, session }
}

async function dropped(
  { options, claim, lease }: Performance,
  copy: WorkspaceCopy,
  { state, known }: { readonly state: Run['state'] | undefined; readonly known: KeptSet | undefined },
): Promise<WorkerEnd> {
  if (known) await copy.forget(known)
  options.say(`${claim.task.task_id}: ${lease.news()?.why ?? 'the lease is lost'}; what the run made was dropped`)
  return state === 'cancelled' ? 'cancelled' : 'lost'
}

/** How the run stands at the control plane; undefined when that cannot be asked. */
export async function stateOf({ options, claim, gone }: Performance): Promise<Run['state'] | undefined> {
  const until = options.clock.monotonic() + stateMs
  const asking = { while: () => options.clock.monotonic() < until && !gone.aborted, random: options.clock.random }
  return persistently(asking, () => options.port.runState(claim.run_id)).catch(() => undefined)
}

type Result = { readonly kept: KeptSet; readonly outcome: RunOutcome }

async function deliver(performance: Performance, port: Pick<RunPort, 'putArtifact' | 'deliver'>, { kept, outcome }: Result): Promise<void> {
  const { claim, options } = performance
  const artifacts = artifactsOf(kept, outcome)
  for (const artifact of artifacts) await port.putArtifact(claim.run_id, artifact)
  const manifest = await options.manifest?.(factsOf(performance, { kept, outcome, artifacts }))
  const skill = skillOf(performance, outcome)
  await port.deliver(claim.run_id, { changes: kept.state, skill, manifest })
}

function artifactsOf({ patch }: KeptSet, { output }: RunOutcome): readonly Artifact[] {
  return [...artifact('output.txt', output), ...artifact('changes.patch', patch ?? '')]
}

function artifact(name: string, text: string): readonly Artifact[] {
  if (text === '') return []
  const bytes = Buffer.from(text).subarray(0, mostArtifact)
  return [{ name, digest: sha256(bytes), body: bytes.toString('base64') }]
}

function factsOf(performance: Performance, { kept, outcome, artifacts }: Result & { readonly artifacts: readonly Artifact[] }): RunFacts {
  const { options, claim, prompt, beganAt, log } = performance
  const { runner } = options
  const version = runner.name === 'own' ? undefined : runner.version
  const { count, head } = options.receipts?.() ?? {}
  const { exitCode, receipts } = outcome
  return {
    ...{ task: claim.task, runId: claim.run_id, attempt: claim.attempt, agentId: options.agentId, role: options.role },
    runner: { name: runner.name, version, model: outcome.model || undefined },
    prompt: { text: prompt, digest: sha256(prompt) },
    ...{ skill: skillOf(performance, outcome), status: 'success', output: outcome.output, tokensReported: outcome.tokens },
    beganAt: new Date(beganAt).toISOString(),
    endedAt: new Date(options.clock.now()).toISOString(),
    ...{ confinement: outcome.confinement, exitCode, log: log.summary() },
    changes: { state: kept.state, digest: kept.digest, summary: kept.summary },
    artifacts: artifacts.map(({ name, digest, body }) => ({ name, digest, bytes: Buffer.from(body, 'base64').length })),
    receipts: receipts && {
      ids: receipts,
      count: typeof count === 'number' ? count : undefined,
      head: typeof head === 'string' ? head : undefined,
    },
  }
}

function completionOf(performance: Performance, outcome: RunOutcome, kept: KeptSet) {
  const { options, claim } = performance
  const waiting = kept.state === 'waiting' ? `\n\n[changes wait for a review: ${kept.summary ?? kept.id}]` : ''
  return {
    event_type: 'task_completed',
    task_id: claim.task.task_id,
    agent_id: options.agentId,
    skill_executed: skillOf(performance, outcome),
    result: { status: 'success', output: `${outcome.output}${waiting}`, tokens_used: outcome.tokens },
  } as const
}

function skillOf({ skill }: Performance, outcome: RunOutcome): string {
  return outcome.skill?.slice(0, 200) ?? skill?.name ?? 'none'
}

async function reported(performance: Performance, outcome: RunOutcome, kept: KeptSet): Promise<void> {
  const { options, claim } = performance
  await noteSession(performance, {
    skill: skillOf(performance, outcome),
    outcome: outcome.output.split('\n')[0] ?? 'success',
    tokens: outcome.tokens,
  })
  if (kept.state === 'waiting')
    options.say(`${claim.task.task_id}: changes wait for a review (${kept.summary ?? kept.id}): braidclaw changes show ${claim.run_id}`)
}

/** How long the end of a run waits for its log to arrive, in ms. */
export const logMs = 10_000

/** The seed's line, in the file and at the control plane. A file that cannot be written does not undo the run. */
export async function noteSession(
  { options, claim, sessions }: Performing,
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
