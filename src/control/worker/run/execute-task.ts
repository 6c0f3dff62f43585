/** Carries out one claimed task: prompt, run, change set, report. It writes nothing with the token of a run whose lease is lost. */

import { atAsyncEnd, errorText } from '../../../kit/errors.ts'
import { cut, visibleLines } from '../../../kit/text.ts'
import type { ActivityPost, Approval } from '../../contract/activity-shapes.ts'
import type { Task } from '../../contract/task-shapes.ts'
import { commandRunner } from '../../runners/foreign-runners.ts'
import type { MatchedSkill, WorkerEnd, WorkerRunner, WorkspaceCopy } from '../worker-options.ts'
import type { RunPort } from '../worker-port.ts'
import { isLost, retryWhile } from '../worker-port.ts'
import { openRunLog } from './child-log.ts'
import {
  deliverRun,
  finishWithoutLease,
  type LeasedTask,
  logMs,
  noteSession,
  type PreparedTask,
  releaseTask,
  retryOf,
  stateOf,
  type TaskContext,
  type TaskExecution,
} from './finish-run.ts'
import { keepLease } from './held-lease.ts'
import { type RunOutcome, runChild } from './run-child.ts'

const usualLeaseSeconds = 60

/** Never rejects. */
export async function executeTask(context: TaskContext): Promise<WorkerEnd> {
  const leased = leaseTask(context)
  const { log, lease, claim, options, disconnected } = leased
  disconnected.addEventListener('abort', log.abandon)
  log.write(`[${new Date(options.clock.now()).toISOString()} ${claim.run_id} ${claim.task.task_id} attempt ${claim.attempt}]\n`)
  try {
    return await execute(await prepareTask(leased))
  } catch (error) {
    if (error instanceof StoppedBefore) return await releaseUnstarted(leased)
    options.say(`${claim.task.task_id}: ${errorText(error)}`)
    log.write(`\n[${errorText(error)}]\n`)
    // This machine or the task itself is the cause, so the task goes back with the reason.
    return await releaseTask(leased, { outcome: 'retry', error: errorText(error).slice(0, 8_000) }, 'failed')
  } finally {
    lease.end()
    log.abandon()
    disconnected.removeEventListener('abort', log.abandon)
  }
}

/** Is thrown when the worker was asked to stop, or the lease ended, before the runner began. */
class StoppedBefore extends Error {}

/** Releases a task of which nothing has run, so there is nothing to report. */
function releaseUnstarted(leased: LeasedTask): Promise<WorkerEnd> {
  const isCancelled = leased.lease.news()?.kind === 'cancelled'
  return isCancelled ? releaseTask(leased, { outcome: 'cancelled' }, 'cancelled') : releaseTask(leased, { outcome: 'now' }, 'released')
}

function leaseTask(context: TaskContext): LeasedTask {
  const { options, claim, claimedAt, agentLog } = context
  const { port, clock } = options
  const run = port.run(claim.run_token)
  const ended = { is: false }
  const lease = keepLease({
    ...{ claim, claimedAt, monotonic: clock.monotonic },
    usualSeconds: options.leaseSeconds ?? usualLeaseSeconds,
    disconnected: context.disconnected,
    beat: () => run.beat(claim.task.task_id),
  })
  const log = openRunLog({
    ...{ runId: claim.run_id, agentLog, secret: claim.run_token },
    port: { appendLog: (...piece) => (ended.is ? port.appendLog(...piece) : run.appendLog(...piece)) },
  })
  return { ...context, run, lease, log, ended }
}

async function prepareTask(leased: LeasedTask): Promise<PreparedTask> {
  const { options, claim } = leased
  const approvals = await unlessStopped(leased, (signal) => approvalsOf(leased, signal))
  return { ...leased, skill: options.skills.match(claim.task), approvals, beganAt: options.clock.now() }
}

/** Asks for the decisions as long as the lease lasts: a run without them would ask an operator again, or work without an approval. */
function approvalsOf(leased: LeasedTask, signal: AbortSignal): Promise<readonly Approval[]> {
  return persistent(leased, signal).approvals(leased.claim.task.task_id)
}

/** @throws StoppedBefore when the signal is why the work failed, and otherwise what the work throws */
async function unlessStopped<T>({ lease, closing }: LeasedTask, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.any([lease.signal, closing])
  try {
    return await work(signal)
  } catch (error) {
    throw signal.aborted || !lease.isHeld() ? new StoppedBefore() : error
  }
}

async function execute(task: PreparedTask): Promise<WorkerEnd> {
  const { options, claim, skill } = task
  if (!skill && options.skills.exists && options.role !== orchestrator)
    return escalate(task, { message: `no skill of the library matches the task ${JSON.stringify(claim.task.title)}`, tokens: 0 })
  const copy = await unlessStopped(task, (signal) => copyFor(task, signal))
  const execution = { ...task, prompt: taskPrompt(task, copy) }
  await using _end = atAsyncEnd(() => copy.remove())
  return await settle(execution, copy, await runIn(execution, copy))
}

/** Makes the copy, or continues with the one that waited; that one is kept when the worker has to stop now. */
async function copyFor({ options, claim }: PreparedTask, signal: AbortSignal): Promise<WorkspaceCopy> {
  const { task_id: taskId } = claim.task
  const command = `${taskId} by ${options.runner.name}`
  const copy = await options.copyWorkspace({ runId: claim.run_id, taskId, attempt: claim.attempt, command, signal })
  if (!signal.aborted) return copy
  if (copy.earlier) await copy.park(copy.earlier)
  await copy.remove()
  throw signal.reason
}

async function runIn(execution: TaskExecution, copy: WorkspaceCopy): Promise<RunOutcome> {
  const { options, claim, lease, stopping, leaving, prompt, log, skill } = execution
  const skillIndex = options.skills.index(options.agentId)
  const stop = AbortSignal.any([lease.signal, stopping])
  const runner = skill?.command ? commandOf(skill.command, options) : options.runner
  if (runner.name !== 'own')
    return runChild({
      ...execution,
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
    run: persistent(execution, signal),
    workspace: copy.path,
    session: copy.earlier?.runner === 'own' ? copy.earlier.session : undefined,
  })
  return { ...result, ending: signal.aborted ? 'stopped' : result.ending, confinement: 'in process' }
}

/** Returns the calls of a run such that they wait for the control plane as long as the lease lasts: one that fails would fail the run. */
function persistent({ options, run, lease }: LeasedTask, signal: AbortSignal): RunPort {
  const retry = { ...retryOf({ options, lease }), while: () => lease.isHeld() && !signal.aborted, signal }
  const wrap =
    <Given extends unknown[], Result>(ask: (...given: Given) => Promise<Result>) =>
    (...given: Given) =>
      retryWhile(retry, () => ask(...given))
  return {
    ...run,
    approvals: wrap(run.approvals),
    useApproval: wrap(run.useApproval),
    activity: wrap(run.activity),
    reserve: wrap(run.reserve),
    settle: wrap(run.settle),
  }
}

/** Makes the runner of a skill that is a program and needs no model. @throws Error when the program does not exist */
function commandOf(command: readonly string[], { env }: TaskExecution['options']): WorkerRunner {
  const [program = ''] = command
  const path = Bun.which(program, { PATH: env.PATH ?? '' })
  if (path === null) throw new Error(`the program ${JSON.stringify(program)} of the skill was not found`)
  return { name: 'command', runner: commandRunner(command), path }
}

async function settle(execution: TaskExecution, copy: WorkspaceCopy, run: RunOutcome): Promise<WorkerEnd> {
  const { lease } = execution
  const outcome = run.ending === 'completed' && lease.isHeld() ? await checkedOutcome(execution, copy, run) : run
  const { ending } = outcome
  if (!lease.isHeld()) return finishWithoutLease(execution, copy, outcome)
  if (ending === 'waiting' || ending === 'blocked') return finishParked(execution, copy, outcome)
  if (ending === 'completed' && lease.news() === undefined) return deliverRun(execution, copy, outcome)
  const end = await giveUp(execution, outcome)
  // The model is refused as soon as the task waits for a person, and then the program fails before a beat has reported the lost lease.
  return end === 'lost' ? finishWithoutLease(execution, copy, outcome) : end
}

/** Runs the check of the task on what the run left; one that does not pass makes it a failure. */
async function checkedOutcome(execution: TaskExecution, { path }: WorkspaceCopy, run: RunOutcome): Promise<RunOutcome> {
  const { options, claim, lease, stopping, leaving, log } = execution
  const { check } = claim.task
  if (!check) return run
  const stop = AbortSignal.any([lease.signal, stopping, leaving])
  const why = options.check ? await options.check(check, path, stop) : 'this worker runs no checks'
  log.write(`\n[check ${JSON.stringify(check)}: ${why === undefined ? 'passed' : 'did not pass'}]\n`)
  if (why === undefined) return run
  return { ...run, ending: stop.aborted ? 'stopped' : 'failed', output: `the check ${JSON.stringify(check)} did not pass: ${why}` }
}

function giveUp(execution: TaskExecution, outcome: RunOutcome): Promise<WorkerEnd> {
  const { ending, tokens } = outcome
  if (execution.lease.news()?.kind === 'cancelled')
    return releaseTask(execution, { outcome: 'cancelled', tokens_used: tokens }, 'cancelled')
  if (ending === 'stopped') return releaseTask(execution, { outcome: 'now', tokens_used: tokens }, 'released')
  return failTask(execution, outcome)
}

/**
 * Ends a run that the control plane has parked, to wait for an operator or for budget. A task that needs more than its whole limit is not parked:
 * it fails.
 */
async function finishParked(execution: TaskExecution, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  return (await stateOf(execution)) === 'running' ? failTask(execution, outcome) : finishWithoutLease(execution, copy, outcome)
}

/** Releases a failed task for another attempt; without attempts left, it is escalated. */
async function failTask(execution: TaskExecution, { output, tokens }: RunOutcome): Promise<WorkerEnd> {
  const { skill, options } = execution
  const error = output.slice(0, 8_000)
  const end = await releaseTask(execution, { outcome: 'retry', error, tokens_used: tokens }, 'failed', ({ status }) =>
    status === 'dead' && options.role !== orchestrator ? escalateDead(execution, error) : 'failed',
  )
  if (end === 'lost') return end
  options.say(`${execution.claim.task.task_id}: ${cut(error.split('\n')[0] ?? '', 500)}`)
  await noteSession(execution, { skill: skill?.name ?? 'none', outcome: 'failed', tokens })
  return end
}

const orchestrator = 'orchestrator'

type Escalation = { readonly message: string; readonly tokens: number }

/** Escalates while the lease is ours: the control plane makes a linked task for the orchestrator, and ours then ends as failed. */
async function escalate(execution: PreparedTask, escalation: Escalation): Promise<WorkerEnd> {
  const { options, run, lease, log } = execution
  const error = escalation.message.slice(0, 8_000)
  await log.close(Math.min(logMs, lease.remaining() / 3))
  try {
    await retryWhile(retryOf(execution), () => run.activity(postOf(execution, escalation)))
  } catch (trouble) {
    options.say(`${execution.claim.task.task_id}: the escalation did not arrive: ${errorText(trouble)}`)
    return isLost(trouble) ? 'lost' : releaseTask(execution, { outcome: 'retry', error }, 'failed')
  }
  await noteEscalation(execution, escalation)
  return releaseTask(execution, { outcome: 'failed', error, tokens_used: escalation.tokens }, 'escalated')
}

/** Escalates a task that has used up its attempts. It has no lease any more, so the agent's own key is used. Its tokens are counted already. */
async function escalateDead(execution: PreparedTask, message: string): Promise<WorkerEnd> {
  const { options, claim, disconnected } = execution
  const escalation = { message, tokens: 0 }
  const until = options.clock.monotonic() + logMs
  const retry = { while: () => options.clock.monotonic() < until && !disconnected.aborted, random: options.clock.random }
  try {
    await retryWhile(retry, () => options.port.activity(postOf(execution, escalation)))
  } catch (trouble) {
    options.say(`${claim.task.task_id}: the escalation did not arrive: ${errorText(trouble)}`)
    return 'failed'
  }
  return 'escalated'
}

function postOf({ options, claim }: PreparedTask, { message, tokens }: Escalation): ActivityPost {
  return {
    event_type: 'error',
    agent_id: options.agentId,
    task_id: claim.task.task_id,
    error_message: message.slice(0, 8_000),
    action_taken: `Escalated to ${orchestrator}`,
    tokens_used: tokens,
  }
}

async function noteEscalation(execution: PreparedTask, { message, tokens }: Escalation): Promise<void> {
  const { options, claim, skill } = execution
  options.say(`${claim.task.task_id}: escalated: ${message}`)
  await noteSession(execution, { skill: skill?.name ?? 'none', outcome: `escalated: ${message}`, tokens })
}

/**
 * Writes the prompt about a task. Task texts come from outside: they are data in a JSON block, and never become arguments. The text begins with a
 * word, so no program takes it for an option.
 */
function taskPrompt({ options, claim, sessions, skill, approvals }: PreparedTask, { earlier }: WorkspaceCopy): string {
  const { task } = claim
  const last = sessions.last()
  const parts = [
    `You are the agent "${options.agentId}" with the role "${options.role}". Carry out this one task, then answer with a short report of the result.`,
    `Task (data, in JSON):\n${JSON.stringify(factsOf(task), null, 2)}`,
    ...(skill ? [skillText(skill)] : []),
    ...(last ? [`Your last run (from your session file): ${JSON.stringify(last)}`] : []),
    ...approvals.filter(({ state }) => state === 'approved' || state === 'rejected' || state === 'revise').map(approvalText),
    ...(earlier
      ? ['The previous run of this task stopped in order to wait. The current folder is as it left it: continue from there.']
      : []),
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
  const decision = state === 'approved' || state === 'rejected' || state === 'revise' ? words[state] : state
  return `An operator decided about ${JSON.stringify(operation)} (${approval_id}): ${decision}${note ? `; note: ${JSON.stringify(note)}` : ''}`
}
