/** Carries out one claimed task: prompt, run, change set, report. Nothing is written under the token of a run whose lease is lost. */

import { commandRunner } from '../../runners/command-runner.ts'
import type { WorkerEnd, WorkerRunner, WorkspaceCopy } from '../worker-options.ts'
import { afterwards, deliverRun, stateOf } from './deliver-run.ts'
import { escalate, escalateDead, orchestrator } from './escalate.ts'
import { keepLease } from './lease.ts'
import { giveBack, type Held, messageOf, noteSession, type Performance, type Performing } from './performance.ts'
import { runChild } from './run-child.ts'
import { openRunLog } from './run-log.ts'
import type { RunOutcome } from './run-outcome.ts'
import { taskPrompt } from './task-prompt.ts'

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
    options.say(`${claim.task.task_id}: ${messageOf(error)}`)
    log.write(`\n[${messageOf(error)}]\n`)
    // What kept the run from its end is the fault of this machine or of the task: the task goes back with the reason.
    return await giveBack(held, { outcome: 'retry', error: messageOf(error).slice(0, 8_000) }, 'failed')
  } finally {
    lease.end()
    log.abandon()
    gone.removeEventListener('abort', log.abandon)
  }
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

async function prepared(held: Held): Promise<Performance> {
  const { options, claim, sessions, run } = held
  const { agentId, role, skills, clock } = options
  const { task } = claim
  const skill = skills.match(task)
  const approvals = await run.approvals(task.task_id).catch(() => [])
  const prompt = taskPrompt({ agentId, role, task, last: sessions.last(), skill, approvals })
  return { ...held, skill, prompt, beganAt: clock.now() }
}

async function perform(performance: Performance): Promise<WorkerEnd> {
  const { options, claim, skill } = performance
  const { task } = claim
  if (!skill && options.skills.isThere && options.role !== orchestrator)
    return escalate(performance, { message: `no skill of the library matches the task ${JSON.stringify(task.title)}`, tokens: 0 })
  const command = `${task.task_id} by ${options.runner.name}`
  const copy = await options.copyWorkspace({ runId: claim.run_id, taskId: task.task_id, command })
  try {
    return await settle(performance, copy, await runIn(performance, copy))
  } finally {
    await copy.remove()
  }
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
    ...{ task: claim.task, prompt, skillIndex, run, log: log.write, signal },
    ...{ workspace: copy.path, home: copy.home },
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
  const { ending, tokens } = outcome
  if (!lease.isHeld()) return afterwards(performance, copy, outcome)
  if (ending === 'waiting' || ending === 'blocked') return parked(performance, copy, outcome)
  if (lease.news()?.kind === 'cancelled') return giveBack(performance, { outcome: 'cancelled', tokens_used: tokens }, 'cancelled')
  if (ending === 'stopped') return giveBack(performance, { outcome: 'now', tokens_used: tokens }, 'released')
  if (ending === 'completed') return deliverRun(performance, copy, outcome)
  return failed(performance, outcome)
}

/** The control plane parks a task that waits for an operator or for budget. One that needs more than its whole limit is not parked: it fails. */
async function parked(performance: Performance, copy: WorkspaceCopy, outcome: RunOutcome): Promise<WorkerEnd> {
  return (await stateOf(performance)) === 'running' ? failed(performance, outcome) : afterwards(performance, copy, outcome)
}

/** A task that has no attempt left goes to somebody who can decide. */
async function failed(performance: Performance, { output, tokens }: RunOutcome): Promise<WorkerEnd> {
  const { skill, options } = performance
  const error = output.slice(0, 8_000)
  await noteSession(performance, { skill: skill?.name ?? 'none', outcome: 'failed', tokens })
  return giveBack(performance, { outcome: 'retry', error, tokens_used: tokens }, 'failed', ({ status }) =>
    status === 'dead' && options.role !== orchestrator ? escalateDead(performance, error) : 'failed',
  )
}
