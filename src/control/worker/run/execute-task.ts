/** Carries out one claimed task: prompt, run, change set, report. Nothing is written under the token of a run whose lease is lost. */

import { errorText } from '../../../kit/errors.ts'
import { cut, visibleLines } from '../../../kit/text.ts'
import type { ActivityPost, Approval } from '../../contract/activity-shapes.ts'
import type { SessionLine } from '../../contract/run-shapes.ts'
import type { Task } from '../../contract/task-shapes.ts'
import { commandRunner } from '../../runners/command-runner.ts'
import type { MatchedSkill, WorkerEnd, WorkerRunner, WorkspaceCopy } from '../worker-options.ts'
import { openRunLog } from './child-log.ts'
import {
  deliverRun,
  finishWithoutLease,
  type Held,
  logMs,
  noteSession,
  type Performance,
  type Performing,
  type Prepared,
  releaseTask,
  stateOf,
} from './finish-run.ts'
import { keepLease } from './held-lease.ts'
import { isLost, persistently } from './retry-while.ts'
import type { RunOutcome } from './run-child.ts'
import { runChild } from './run-child.ts'

const usualLeaseSeconds = 60

/** Never rejects. */
export async function performTask(performing: Performing): Promise<WorkerEnd> {
  const held = hold(performing)
  const { log, lease, claim, options, gone } = held
  gone.addEventListener('abort', log.abandon)
  log.write(`[${new Date(options.clock.now()).toISOString()} ${claim.run_id} ${claim.task.task_id} attempt ${claim.attempt}]\n`)
  try {
    return await perform(await prepared(held))
  } catch (error) {
    if (error instanceof StoppedBefore) return await unbegun(held)
    options.say(`${claim.task.task_id}: ${errorText(error)}`)
    log.write(`\n[${errorText(error)}]\n`)
    // What kept the run from its end is the fault of this machine or of the task: the task goes back with the reason.
    return await releaseTask(held, { outcome: 'retry', error: errorText(error).slice(0, 8_000) }, 'failed')
  } finally {
    lease.end()
    log.abandon()
    gone.removeEventListener('abort', log.abandon)
  }
}

/** The worker was asked to stop, or the lease ended, before the runner began. */
class StoppedBefore extends Error {}

/** Nothing has run, so there is nothing to report. */
function unbegun(held: Held): Promise<WorkerEnd> {
  const isCancelled = held.lease.news()?.kind === 'cancelled'
  return isCancelled ? releaseTask(held, { outcome: 'cancelled' }, 'cancelled') : releaseTask(held, { outcome: 'now' }, 'released')
}

function hold(performing: Performing): Held {
  const { options, claim, claimedAt, agentLog } = performing
  const { port, clock } = options
  const run = port.run(claim.run_token)
  const ended = { is: false }
  const lease = keepLease({
    ...{ claim, claimedAt, monotonic: clock.monotonic },
    usualSeconds: options.leaseSeconds ?? usualLeaseSeconds,
    gone: performing.gone,
    beat: () => run.beat(claim.task.task_id),
  })
  const log = openRunLog({
    ...{ runId: claim.run_id, agentLog, secret: claim.run_token },
    port: { appendLog: (...piece) => (ended.is ? port.appendLog(...piece) : run.appendLog(...piece)) },
  })
  return { ...performing, run, lease, log, ended }
}

async function prepared(held: Held): Promise<Prepared> {
  const { options, claim } = held
  const approvals = await unlessStopped(held, (signal) => approvalsOf(held, signal))
  return { ...held, skill: options.skills.match(claim.task), approvals, beganAt: options.clock.now() }
}

/** Asks for the decision as long as the lease lasts: a run that does not know it would ask an operator again, or do without. */
function approvalsOf({ options, claim, run, lease }: Held, signal: AbortSignal): Promise<readonly Approval[]> {
  const asking = { while: () => lease.isHeld() && !signal.aborted, random: options.clock.random, signal }
  return persistently(asking, () => run.approvals(claim.task.task_id))
}

/** @throws StoppedBefore when the signal is why the work failed, and otherwise what the work throws */
async function unlessStopped<T>({ lease, closing }: Held, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.any([lease.signal, closing])
  try {
    return await work(signal)
  } catch (error) {
    throw signal.aborted || !lease.isHeld() ? new StoppedBefore() : error
  }
}

async function perform(prepared: Prepared): Promise<WorkerEnd> {
  const { options, claim, skill } = prepared
  if (!skill && options.skills.isThere && options.role !== orchestrator)
    return escalate(prepared, { message: `no skill of the library matches the task ${JSON.stringify(claim.task.title)}`, tokens: 0 })
  const copy = await unlessStopped(prepared, (signal) => copyFor(prepared, signal))
  const performance = { ...prepared, prompt: promptOf(prepared, copy) }
  try {
    return await settle(performance, copy, await runIn(performance, copy))
  } finally {
    await copy.remove()
  }
}

/** A copy that waited goes on waiting when the worker has to stop now. */
async function copyFor({ options, claim }: Prepared, signal: AbortSignal): Promise<WorkspaceCopy> {
  const { task_id: taskId } = claim.task
  const command = `${taskId} by ${options.runner.name}`
  const copy = await options.copyWorkspace({ runId: claim.run_id, taskId, attempt: claim.attempt, command, signal })
  if (!signal.aborted) return copy
  if (copy.earlier) await copy.park(copy.earlier)
  await copy.remove()
  throw signal.reason
}

function promptOf({ options, claim, sessions, skill, approvals }: Prepared, { earlier }: WorkspaceCopy): string {
  const { agentId, role } = options
  return taskPrompt({ agentId, role, task: claim.task, last: sessions.last(), skill, approvals, isContinuation: earlier !== undefined })
}

async function runIn(performance: Performance, copy: WorkspaceCopy): Promise<RunOutcome> {
  const { options, claim, lease, stopping, leaving, prompt, log, run, skill } = performance
  const skillIndex = options.skills.index(options.agentId)
  const stop = AbortSignal.any([lease.signal, stopping])
  const runner = skill?.command ? commandOf(skill.command, options) : options.runner
  if (runner.name !== 'own')
    return runChild({
      ...performance,
      runner: runner.runner,
      path: runner.path,
      skillIndex,
      copy,
      stop,
      kill: AbortSignal.any([leaving, lease.lost]),
    })
  const signal = AbortSignal.any([stop, leaving])
  const result = await runner.run({
    ...{ task: claim.task, prompt, skillIndex, log: log.write, signal },
    run: { ...run, approvals: () => approvalsOf(performance, signal) },
    workspace: copy.path,
    session: copy.earlier?.runner === 'own' ? copy.earlier.session : undefined,
  })
  return { ...result, ending: signal.aborted ? 'stopped' : result.ending, confinement: 'in process' }
}

/** A skill that is a program needs no model. @throws Error when the program is not there */
function commandOf(command: readonly string[], { env }: Performance['options']): WorkerRunner {
  const [program = ''] = command
  const path = Bun.which(program, { PATH: env.PATH ?? '' })
  if (path === null) throw new Error(`the program ${JSON.stringify(program)} of the skill was not found`)
  return { name: 'command', runner: commandRunner(command), path }
}

async function settle(performance: Performance, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  const { lease } = performance
  const { ending } = outcome
  if (!lease.isHeld()) return finishWithoutLease(performance, copy, outcome)
  if (ending === 'waiting' || ending === 'blocked') return parked(performance, copy, outcome)
  if (ending === 'completed' && lease.news() === undefined) return deliverRun(performance, copy, outcome)
  const end = await givenUp(performance, outcome)
  // A program fails when its model is refused, and it is refused as soon as the task waits for somebody: no beat has said so yet.
  return end === 'lost' ? finishWithoutLease(performance, copy, outcome) : end
}

function givenUp(performance: Performance, outcome: RunOutcome): Promise<WorkerEnd> {
  const { ending, tokens } = outcome
  if (performance.lease.news()?.kind === 'cancelled')
    return releaseTask(performance, { outcome: 'cancelled', tokens_used: tokens }, 'cancelled')
  if (ending === 'stopped') return releaseTask(performance, { outcome: 'now', tokens_used: tokens }, 'released')
  return failed(performance, outcome)
}

/** The control plane parks a task that waits for an operator or for budget. One that needs more than its whole limit is not parked: it fails. */
async function parked(performance: Performance, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  return (await stateOf(performance)) === 'running' ? failed(performance, outcome) : finishWithoutLease(performance, copy, outcome)
}

/** A task that has no attempt left goes to somebody who can decide. */
async function failed(performance: Performance, { output, tokens }: RunOutcome): Promise<WorkerEnd> {
  const { skill, options } = performance
  const error = output.slice(0, 8_000)
  const end = await releaseTask(performance, { outcome: 'retry', error, tokens_used: tokens }, 'failed', ({ status }) =>
    status === 'dead' && options.role !== orchestrator ? escalateDead(performance, error) : 'failed',
  )
  if (end === 'lost') return end
  options.say(`${performance.claim.task.task_id}: ${cut(error.split('\n')[0] ?? '', 500)}`)
  await noteSession(performance, { skill: skill?.name ?? 'none', outcome: 'failed', tokens })
  return end
}

const orchestrator = 'orchestrator'

type Escalation = { readonly message: string; readonly tokens: number }

/** While the lease is ours. The control plane makes the linked task for the orchestrator; ours then ends as failed. */
async function escalate(performance: Prepared, escalation: Escalation): Promise<WorkerEnd> {
  const { options, run, lease, log } = performance
  const error = escalation.message.slice(0, 8_000)
  await log.close(Math.min(logMs, lease.remaining()))
  try {
    await persistently({ while: lease.isHeld, random: options.clock.random }, () => run.activity(postOf(performance, escalation)))
  } catch (trouble) {
    options.say(`${performance.claim.task.task_id}: the escalation did not arrive: ${errorText(trouble)}`)
    return isLost(trouble) ? 'lost' : releaseTask(performance, { outcome: 'retry', error }, 'failed')
  }
  await noted(performance, escalation)
  return releaseTask(performance, { outcome: 'failed', error, tokens_used: escalation.tokens }, 'escalated')
}

/** For a task that has used up its attempts: nobody has its lease, so the agent itself says so. Its tokens are counted already. */
async function escalateDead(performance: Prepared, message: string): Promise<WorkerEnd> {
  const { options, claim, gone } = performance
  const escalation = { message, tokens: 0 }
  const until = options.clock.monotonic() + logMs
  const asking = { while: () => options.clock.monotonic() < until && !gone.aborted, random: options.clock.random }
  try {
    await persistently(asking, () => options.port.activity(postOf(performance, escalation)))
  } catch (trouble) {
    options.say(`${claim.task.task_id}: the escalation did not arrive: ${errorText(trouble)}`)
    return 'failed'
  }
  return 'escalated'
}

function postOf({ options, claim }: Prepared, { message, tokens }: Escalation): ActivityPost {
  return {
    event_type: 'error',
    agent_id: options.agentId,
    task_id: claim.task.task_id,
    error_message: message.slice(0, 8_000),
    action_taken: `Escalated to ${orchestrator}`,
    tokens_used: tokens,
  }
}

async function noted(performance: Prepared, { message, tokens }: Escalation): Promise<void> {
  const { options, claim, skill } = performance
  options.say(`${claim.task.task_id}: escalated: ${message}`)
  await noteSession(performance, { skill: skill?.name ?? 'none', outcome: `escalated: ${message}`, tokens })
}

type PromptParts = {
  readonly agentId: string
  readonly role: string
  readonly task: Task
  readonly last: SessionLine | undefined
  readonly skill: MatchedSkill | undefined
  /** Answered approvals of this task. */
  readonly approvals: readonly Approval[]
  /** The workspace is as the run before left it. */
  readonly isContinuation: boolean
}

/**
 * Writes what a model is told about a task. Task texts come from outside: they are data in a JSON block, and never become arguments. The
 * text begins with a word, so no program takes it for an option.
 */
function taskPrompt({ agentId, role, task, last, skill, approvals, isContinuation }: PromptParts): string {
  const parts = [
    `You are the agent "${agentId}" with the role "${role}". Carry out this one task, then answer with a short report of the result.`,
    `Task (data, in JSON):\n${JSON.stringify(factsOf(task), null, 2)}`,
    ...(skill ? [skillText(skill)] : []),
    ...(last ? [`Your last run (from your session file): ${JSON.stringify(last)}`] : []),
    ...approvals.filter(({ state }) => state === 'approved' || state === 'rejected' || state === 'revise').map(approvalText),
    ...(isContinuation ? ['The run before this one stopped in order to wait. The current folder is as it left it: go on from there.'] : []),
    ...(task.attempt > 1 && task.error ? [`Attempt ${task.attempt}; the attempt before failed: ${JSON.stringify(task.error)}`] : []),
    'Change files only in the current folder. It is a private copy: a person reviews what you changed and applies it.',
  ]
  return `${parts.map(visibleLines).join('\n\n')}\n`
}

function factsOf({ task_id, title, description, priority, labels, context }: Task) {
  return { task_id, title, description, priority, labels, context }
}

function skillText({ name, summary, content }: MatchedSkill): string {
  const head = `Use the skill "${name}"${summary ? `: ${summary}` : ''}.`
  return content === undefined ? `${head} Its full text comes from skills_search.` : `${head}\n\n${content}`
}

function approvalText({ approval_id, operation, state, note }: Approval): string {
  const words = { approved: 'approved', rejected: 'rejected', revise: 'to be revised' } as const
  const said = state === 'approved' || state === 'rejected' || state === 'revise' ? words[state] : state
  return `An operator decided about ${JSON.stringify(operation)} (${approval_id}): ${said}${note ? `; note: ${JSON.stringify(note)}` : ''}`
}
