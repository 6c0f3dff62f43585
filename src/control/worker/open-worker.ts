/** Opens a worker: one agent that claims tasks from the control plane and carries them out on this machine. */

import { hostname } from 'node:os'
import { join } from 'node:path'
import { sleep } from '../../kit/abort.ts'
import { atEnd, errorText } from '../../kit/errors.ts'
import { openRotatingLog } from '../../service/rotating-log.ts'
import type { SeedState } from '../contract/activity-shapes.ts'
import { countRefusals, isPassing, PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Claim } from '../contract/task-shapes.ts'
import { findConfinement } from './child/child-confinement.ts'
import { openChildRecords, termGraceMs } from './child/child-processes.ts'
import { refusedKey } from './identify.ts'
import { executeTask } from './run/execute-task.ts'
import { logMs, type TaskContext } from './run/finish-run.ts'
import { openSessionLog } from './session-log.ts'
import type { Worker, WorkerEnd, WorkerOptions } from './worker-options.ts'
import { childrenIn } from './worker-places.ts'

const usualGraceMs = 10_000
/** Limits, in ms, how long a run that was stopped may report, and how long a worker that must end waits for an answer of the control plane. */
const [reportMs, answerMs] = [termGraceMs + logMs, 5_000]
/** A pane follows the file by its name, so it may be replaced. */
const agentLogBytes = 32 * 1024 * 1024

/** Reads and writes nothing before `run`. */
export function openWorker(options: WorkerOptions): Worker {
  const closing = new AbortController()
  const stopping = new AbortController()
  const leaving = new AbortController()
  const disconnected = new AbortController()
  const timers: ReturnType<typeof setTimeout>[] = []
  const later = (ms: number, act: () => void) => void timers.push(setTimeout(act, ms))

  function stop(): void {
    if (closing.signal.aborted) {
      options.say('ending: a running task is given back now')
      leave()
      return
    }
    const graceMs = options.graceMs ?? usualGraceMs
    options.say(`stopping: no more tasks; a running one has ${graceMs / 1000} s to end`)
    closing.abort()
    later(graceMs, () => {
      stopping.abort()
      later(reportMs, leave)
    })
  }

  /** Ends the run at once. When the control plane does not answer, it gets the task back as soon as the lease expires. */
  function leave(): void {
    stopping.abort()
    leaving.abort()
    later(answerMs, () => {
      disconnected.abort()
      options.hangUp?.()
    })
  }

  async function run(): Promise<WorkerEnd> {
    const { agentId, folders, runner, say } = options
    const records = openChildRecords(childrenIn(folders.state))
    const left = await records.clear()
    if (left.length > 0) say(`ended processes that a killed worker had left: ${left.join(', ')}`)
    const confinement = await findConfinement({ apiUrl: options.apiUrl, network: options.network ?? 'control' })
    if (runner.name !== 'own') for (const line of confinement.holds) say(line)
    const agentLog = openRotatingLog({ path: join(folders.logs, `${agentId}.log`), maxBytes: agentLogBytes, keep: 2 })
    const sessions = openSessionLog(folders.sessions, agentId)
    const signals = { closing: closing.signal, stopping: stopping.signal, leaving: leaving.signal, disconnected: disconnected.signal }
    const common = { options, confinement, records, sessions, agentLog, ...signals }
    using _end = atEnd(() => {
      for (const timer of timers) clearTimeout(timer)
      agentLog.close()
    })
    return await heartbeat({
      ...{ options, closing: closing.signal, execute: (claimed) => executeTask({ ...common, ...claimed }) },
      facts: factsOf(options, { way: confinement.way, network: confinement.network, holds: confinement.holds }),
    })
  }

  return { run, stop }
}

function factsOf({ runner, role, folders, model }: WorkerOptions, confinement: object): Readonly<Record<string, unknown>> {
  const version = runner.name === 'own' ? undefined : runner.version
  return {
    host: hostname(),
    pid: process.pid,
    role,
    runner: runner.name,
    runner_version: version,
    model: model || undefined,
    workspace: folders.workspace,
    platform: `${process.platform}/${process.arch}`,
    confinement: runner.name === 'own' ? 'in process' : confinement,
  }
}

type HeartbeatOptions = {
  readonly options: WorkerOptions
  /** Aborts when nothing more may be claimed. */
  readonly closing: AbortSignal
  readonly execute: (claimed: Pick<TaskContext, 'claim' | 'claimedAt'>) => Promise<WorkerEnd>
  /** Is sent with each report, besides `options.facts`. */
  readonly facts: Readonly<Record<string, unknown>>
}

const usualWaitMs = 25_000
const reportEveryMs = 60_000
const inactiveMs = 2_000
const pauses = { firstMs: 500, longestMs: 30_000 } as const

/** Lists refusals that do not go away by waiting. */
const hopeless = ['unauthorized', 'forbidden', 'bad_request']

/** Repeats the heartbeat of the seed: state, claim, run, activity. @throws PlaneRefusal when the control plane refuses the worker itself */
async function heartbeat(heart: HeartbeatOptions): Promise<WorkerEnd> {
  const { options, closing } = heart
  const { say, clock } = options
  const refusals = countRefusals()
  const state = { wait: pauses.firstMs as number, trouble: '', reportedAt: Number.NEGATIVE_INFINITY }
  while (!closing.aborted) {
    try {
      if (clock.monotonic() - state.reportedAt >= reportEveryMs) {
        await reportOnce(heart)
        state.reportedAt = clock.monotonic()
      }
      const end = await round(heart)
      if (state.trouble !== '') say('working again')
      refusals.reset()
      Object.assign(state, { wait: pauses.firstMs, trouble: '' })
      if (options.once) return end
    } catch (error) {
      if (closing.aborted) break
      const isFinal = refusals.isFinal(error)
      if (isFinal && error instanceof PlaneRefusal && hopeless.includes(error.code)) throw refusedKey(options, error)
      const trouble = errorText(error)
      if (trouble !== state.trouble) say(`${trouble}; waiting`)
      state.trouble = trouble
      if (error instanceof Inactive) {
        if (options.once) return 'none'
        await sleep(inactiveMs, closing)
        continue
      }
      const retryMs = error instanceof PlaneRefusal ? error.details.retry_after_ms : undefined
      await sleep(retryMs ?? state.wait * (0.5 + clock.random() / 2), closing)
      state.wait = Math.min(pauses.longestMs, state.wait * 2)
    }
  }
  return 'stopped'
}

/** Reads the state once, claims once, and carries out at most one task. */
async function round({ options, closing, execute }: HeartbeatOptions): Promise<WorkerEnd> {
  const { port, agentId, clock, say } = options
  if (!isActive(await port.state(closing), agentId)) throw new Inactive(agentId)
  const claimedAt = clock.monotonic()
  const claim = await port.claim(requestOf(options), closing).catch((error: unknown) => {
    if (closing.aborted) return undefined
    throw error
  })
  if (claim === undefined) return 'none'
  if (closing.aborted) return handBack(options, claim)
  say(`${claim.task.task_id} attempt ${claim.attempt}: ${JSON.stringify(claim.task.title)}`)
  const end = await execute({ claim, claimedAt })
  say(`${claim.task.task_id}: ${end}`)
  return end
}

/** Gives a task back that was claimed while the request to stop arrived. */
async function handBack({ port }: WorkerOptions, { task, run_token }: Claim): Promise<WorkerEnd> {
  await port.run(run_token).release(task.task_id, { outcome: 'now' })
  return 'released'
}

/** Is thrown when the agent is paused or its heartbeat is switched off: the worker asks again later and claims nothing. */
class Inactive extends Error {
  constructor(agentId: string) {
    super(`the agent ${JSON.stringify(agentId)} is paused or its heartbeat is switched off`)
  }
}

function isActive({ agents }: SeedState, agentId: string): boolean {
  return agents.find(({ id }) => id === agentId)?.heartbeat_enabled !== false
}

function requestOf({ role, agentId, labels = [], leaseSeconds, waitMs = usualWaitMs }: WorkerOptions) {
  return { role, agent_id: agentId, wait_ms: waitMs, labels: [...labels], lease_s: leaseSeconds }
}

async function reportOnce({ options, facts }: HeartbeatOptions): Promise<void> {
  const { port, agentId, receipts, reportDecided, tidyCopies, say } = options
  await port.report(agentId, { ...facts, ...options.facts }, receipts?.())
  await reportDecided?.(({ runId, changes }) =>
    port.deliver(runId, { changes }).catch((error: unknown) => {
      if (isPassing(error) || (error instanceof PlaneRefusal && error.code === 'unauthorized')) throw error
      say(`${runId}: ${errorText(error)}`)
    }),
  )
  await tidyCopies?.((id) =>
    port.task(id).catch((error: unknown) => {
      if (error instanceof PlaneRefusal && error.code === 'not_found') return undefined
      throw error
    }),
  )
}
