/** Workers and the daemon that die in the middle: every task is done, none by two at a time, and no child is left. */

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nest, type Started } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { repetitions } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { controlProcess } from '../support/control-process.ts'
import { talkTo } from '../support/control-server.ts'

/** How many tasks there are at the beginning. */
const tasks = repetitions({ fast: 4, deep: 8 })
/** How often the daemon is restarted. */
const deaths = repetitions({ fast: 1, deep: 2 })
const seconds = uniqueSeconds()

test.if(needs('bwrap', 'socat', 'curl'))(
  `workers are killed and the daemon is restarted while ${tasks} tasks and more are done`,
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'braidclaw-chaos-'))
    using at = nest()
    const state = { daemon: await controlProcess({ home }), over: false, calm: false, kills: 0, restarts: 0, created: 0 }
    const { url, port } = state.daemon
    const { client } = talkTo(url)
    const operator = client()
    const create = () => operator.tasks.create({ title: `task ${++state.created}`, role: 'sysadmin', max_attempts: 50 })
    while (state.created < tasks) await create()
    /** Those that have not ended: the number of one that has may belong to another process. */
    const workers = new Set<Started>()
    const over = Promise.withResolvers<void>()

    /** Starts a worker again and again; a dice ends some of them. */
    async function life(agent: string): Promise<void> {
      await operator.fleet.add({ id: agent, role: 'sysadmin' })
      const { key } = await operator.fleet.newKey(agent)
      const words = ['control', 'worker', '--agent', agent, '--role', 'sysadmin', '--runner', 'command', '--lease', '3']
      const script = `sleep ${seconds} & sleep 0.3; echo '{"type":"result","ok":true,"output":"done"}'`
      while (!state.over) {
        const worker = at.start([...words, '--', '/bin/sh', '-c', script], {
          env: { CONTROLPLANE_API_URL: url, CONTROLPLANE_API_KEY: key },
          timeoutMs: 150_000,
        })
        workers.add(worker)
        // On a slow machine none would end its task between two kills: when there were enough, they work in peace.
        if (state.calm) await Promise.race([worker.result, over.promise])
        else await Promise.race([worker.result, Bun.sleep(1_200 + Math.random() * 2_500)])
        kill(worker.pid)
        await worker.result
        workers.delete(worker)
        state.kills += 1
      }
    }

    async function restarts(): Promise<void> {
      for (let n = 0; n < deaths; n++) {
        await Bun.sleep(2_000)
        await state.daemon.kill()
        await Bun.sleep(200)
        state.daemon = await controlProcess({ home, port })
        state.restarts += 1
      }
    }

    const lives = [life('a1'), life('a2')]
    try {
      await restarts()
      // A fast machine gets more work, so that the kills meet some.
      for (; state.kills < 3; await Bun.sleep(300)) await create()
      state.calm = true
      await until(async () => (await operator.tasks.list({ status: 'completed', limit: 200 })).tasks.length === state.created, 90_000)
      state.over = true
      over.resolve()
      for (const { pid } of workers) kill(pid)
      await Promise.all(lives)
      const { counts } = await operator.tasks.list({ limit: 200 })
      expect(counts).toEqual({ completed: state.created })
      const { runs } = await operator.runs.list({ limit: 200 })
      const ended = runs.filter(({ state: how }) => how === 'completed')
      expect(ended.map(({ task_id }) => task_id).sort()).toEqual([...new Set(ended.map(({ task_id }) => task_id))].sort())
      expect(ended).toHaveLength(state.created)
      expect(overlapping(runs)).toEqual([])
      expect(state.restarts).toBe(deaths)
      await until(() => sleeperOf(seconds) === undefined)
    } finally {
      state.over = true
      over.resolve()
      for (const { pid } of workers) kill(pid)
      await Promise.allSettled(lives)
      await state.daemon.kill()
      rmSync(home, { recursive: true, force: true })
    }
  },
  150_000,
)

type Span = { readonly run_id: string; readonly task_id: string; readonly began_at: string; readonly ended_at: string | null }

/** Runs of one task that began before the one before them had ended. */
function overlapping(runs: readonly Span[]): readonly string[] {
  const inOrder = [...runs].sort((a, b) => a.began_at.localeCompare(b.began_at))
  return inOrder.flatMap((run, at) =>
    inOrder.slice(0, at).some(({ task_id, ended_at }) => task_id === run.task_id && (ended_at === null || ended_at > run.began_at))
      ? [run.run_id]
      : [],
  )
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}
