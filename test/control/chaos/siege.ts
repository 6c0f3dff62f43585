/** Runs a control plane under attack: daemons and workers are killed, stopped and cut off at random until every task has ended. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { dice } from '../../support/dice.ts'
import { until } from '../../support/until.ts'
import { type ControlProcess, controlProcess } from '../support/control-process.ts'
import type { Postgres } from '../support/postgres.ts'
import type { WorkerConfig } from './chaos-worker.ts'
import { createOperator } from './operator.ts'
import { startRunners } from './runners.ts'
import { openWorld } from './world.ts'

export type SiegeOptions = {
  readonly folder: string
  readonly tasks: number
  /** So many of the tasks are for real workers with children. */
  readonly realTasks: number
  readonly seed: number
  readonly daemons: number
  readonly workers: number
  readonly mostMs: number
  /** A kill or another attack about this often. */
  readonly everyMs: number
  readonly postgres?: { readonly server: Postgres; readonly url: string }
}

export type Siege = { readonly worldFolder: string; readonly ms: number; readonly unfinished: number }

const leaseMs = 1_000
/** Is the lease of the real workers, which need more time than the simulated ones; the daemon gives no longer one. */
export const realLeaseMs = 3_000
const stopMs = 2_200

export async function besiege(options: SiegeOptions): Promise<Siege> {
  const { folder, seed, tasks, postgres } = options
  const worldFolder = join(folder, 'world')
  mkdirSync(worldFolder, { recursive: true })
  const world = openWorld(worldFolder, 'siege')
  const roll = dice(seed)
  const env = { CONTROLPLANE_LEASE_SECONDS: String(realLeaseMs / 1_000), ...(postgres ? { CONTROLPLANE_DATABASE_URL: postgres.url } : {}) }
  const start = (port?: number) => controlProcess({ home: join(folder, 'home'), env, ...(port === undefined ? {} : { port }) })
  const daemons: ControlProcess[] = []
  for (let at = 0; at < options.daemons; at += 1) daemons.push(await start())
  const urls = daemons.map((daemon) => daemon.url)
  const operator = createOperator({
    urls,
    folder: worldFolder,
    seed: seed + 1,
    longestStopMs: stopMs + 1_500,
    realTasks: options.realTasks,
  })
  const agents = Array.from({ length: options.workers * 4 }, (_, at) => ({ id: `w${at}`, role: 'chaos' }))
  const real = ['r0', 'r1'].map((id) => ({ id, role: 'real' }))
  const keys = await operator.setUp([...agents, ...real])
  const begun = performance.now()
  const state = { isOver: false, unfinished: tasks }
  const following = new AbortController()

  function startWorker(at: number, round: number) {
    const own = agents.slice(at * 4, at * 4 + 4).map((agent) => ({ ...agent, key: keys.get(agent.id) ?? '' }))
    const config: WorkerConfig = {
      name: `worker-${at}-${round}`,
      seed: seed + at * 1_000 + round,
      folder: worldFolder,
      urls,
      leaseMs,
      agents: own,
    }
    return Bun.spawn([process.execPath, join(import.meta.dir, 'chaos-worker.ts'), JSON.stringify(config)], {
      env: { PATH: process.env.PATH ?? '', HOME: folder },
      stdout: 'ignore',
      stderr: 'ignore',
    })
  }

  const runners = startRunners({
    folder,
    urls,
    world,
    leaseMs: realLeaseMs,
    agents: real.map((agent) => ({ ...agent, key: keys.get(agent.id) ?? '' })),
  })
  const workers = Array.from({ length: options.workers }, (_, at) => startWorker(at, 0))

  /** A worker that ended, by itself or by a kill, is started again. */
  async function keepWorker(at: number): Promise<void> {
    for (let round = 1; ; round += 1) {
      await workers[at]?.exited
      if (state.isOver) return
      workers[at] = startWorker(at, round)
    }
  }

  async function killDaemon(awayMs = roll(150)): Promise<void> {
    const at = roll(daemons.length)
    const daemon = daemons[at]
    if (!daemon) return
    await daemon.kill()
    world.happen({ kind: 'count', what: 'daemon killed' })
    await Bun.sleep(awayMs)
    daemons[at] = await start(daemon.port)
  }

  const killRunner = async () => runners.kill(roll(real.length))

  async function stopWorker(): Promise<void> {
    const worker = workers[roll(workers.length)]
    worker?.kill('SIGSTOP')
    world.happen({ kind: 'count', what: 'worker stopped' })
    await Bun.sleep(stopMs)
    worker?.kill('SIGCONT')
  }

  async function stopDaemon(): Promise<void> {
    const daemon = daemons[roll(daemons.length)]
    if (!daemon) return
    process.kill(daemon.pid, 'SIGSTOP')
    world.happen({ kind: 'count', what: 'daemon stopped' })
    await Bun.sleep(600 + roll(900))
    process.kill(daemon.pid, 'SIGCONT')
  }

  async function killWorker(): Promise<void> {
    workers[roll(workers.length)]?.kill('SIGKILL')
    world.happen({ kind: 'count', what: 'worker killed' })
  }

  async function killDatabase(): Promise<void> {
    await postgres?.server.stop('immediate')
    await postgres?.server.start()
    world.happen({ kind: 'count', what: 'database killed' })
  }

  async function cutDatabase(): Promise<void> {
    await postgres?.server.cutConnections(postgres.url).catch(() => undefined)
    world.happen({ kind: 'count', what: 'connections cut' })
  }

  /** Each kind once, in turn with the creation of the tasks, so that none meets an idle fleet; then at random. */
  async function attack(): Promise<void> {
    const kinds = [killDaemon, killWorker, killRunner, stopWorker, stopDaemon, ...(postgres ? [cutDatabase, killDatabase] : [])]
    const portion = Math.ceil(tasks / (kinds.length + 1))
    await operator.createTasks(0, portion)
    // While the first daemon is away the lease of a child expires.
    await until(runners.hasLongChild)
    await killDaemon(realLeaseMs + 1_000)
    for (const [at, kind] of kinds.entries()) {
      await operator.createTasks((at + 1) * portion, Math.min(tasks, (at + 2) * portion))
      await Bun.sleep(options.everyMs / 2)
      await kind()
    }
    const often = [...kinds, killDaemon, killWorker]
    // The last third is quiet, because a slow machine would otherwise never get ahead of the attacks.
    while (!state.isOver && performance.now() - begun < (options.mostMs * 2) / 3) {
      await Bun.sleep(options.everyMs / 2 + roll(options.everyMs))
      if (!state.isOver) await often[roll(often.length)]?.()
    }
  }

  async function untilAllEnded(): Promise<number> {
    while (!state.isOver && state.unfinished > 0 && performance.now() - begun < options.mostMs) {
      await Bun.sleep(150)
      state.unfinished = tasks - (await operator.lookAfter())
    }
    state.isOver = true
    return performance.now() - begun
  }

  const keeping = workers.map((_, at) => keepWorker(at))
  const followed = operator.follow(following.signal)

  async function endWorkers(): Promise<void> {
    state.isOver = true
    for (const worker of workers) worker.kill('SIGKILL')
    await Promise.all(keeping)
    await runners.end(12_000)
  }

  try {
    const [ms] = await Promise.all([untilAllEnded(), attack()])
    await endWorkers()
    await operator.untilFollowed()
    return { worldFolder, ms, unfinished: state.unfinished }
  } catch (error) {
    await endWorkers()
    throw error
  } finally {
    following.abort()
    await followed
    await Promise.all(daemons.map((daemon) => daemon.kill()))
  }
}
