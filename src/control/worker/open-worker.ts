/** Opens a worker: one agent that claims tasks from the control plane and carries them out on this machine. */

import { hostname } from 'node:os'
import { join } from 'node:path'
import { openRotatingLog } from '../../service/rotating-log.ts'
import { openChildRecords } from './child/child-records.ts'
import { findConfinement } from './child/confinement-way.ts'
import { termGraceMs } from './child/end-processes.ts'
import { heartbeat } from './heartbeat-loop.ts'
import { performTask } from './run/perform-task.ts'
import { logMs } from './run/performance.ts'
import { openSessionLog } from './session-log.ts'
import type { Worker, WorkerEnd, WorkerOptions } from './worker-options.ts'
import { childrenIn } from './worker-places.ts'

const usualGraceMs = 10_000
/** How long a run that was ended may report, and how long a worker waits that has to leave, for a control plane that does not answer. */
const [reportMs, answerMs] = [termGraceMs + logMs, 5_000]
/** A pane follows the file by its name, so it may be replaced. */
const agentLogBytes = 32 * 1024 * 1024

/** Touches nothing before `run`. */
export function openWorker(options: WorkerOptions): Worker {
  const closing = new AbortController()
  const stopping = new AbortController()
  const leaving = new AbortController()
  const gone = new AbortController()
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

  /** A control plane that does not answer now gets the task back when the lease ends. */
  function leave(): void {
    stopping.abort()
    leaving.abort()
    later(answerMs, () => {
      gone.abort()
      options.hangUp?.()
    })
  }

  async function run(): Promise<WorkerEnd> {
    const { agentId, folders, runner, say } = options
    const records = openChildRecords(childrenIn(folders.state))
    const left = await records.clear()
    if (left.length > 0) say(`ended what a killed worker had left: ${left.join(', ')}`)
    const confinement = await findConfinement({ apiUrl: options.apiUrl, network: options.network ?? 'control' })
    if (runner.name !== 'own') for (const line of confinement.holds) say(line)
    const agentLog = openRotatingLog({ path: join(folders.logs, `${agentId}.log`), maxBytes: agentLogBytes, keep: 2 })
    const sessions = openSessionLog(folders.sessions, agentId)
    const signals = { closing: closing.signal, stopping: stopping.signal, leaving: leaving.signal, gone: gone.signal }
    const common = { options, confinement, records, sessions, agentLog, ...signals }
    try {
      return await heartbeat({
        ...{ options, closing: closing.signal, perform: (claimed) => performTask({ ...common, ...claimed }) },
        facts: factsOf(options, { way: confinement.way, network: confinement.network, holds: confinement.holds }),
      })
    } finally {
      for (const timer of timers) clearTimeout(timer)
      agentLog.close()
    }
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
    ...(version ? { runner_version: version } : {}),
    ...(model ? { model } : {}),
    workspace: folders.workspace,
    platform: `${process.platform}/${process.arch}`,
    confinement: runner.name === 'own' ? 'in process' : confinement,
  }
}
