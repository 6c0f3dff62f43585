/** Workers whose wall clock is wrong by ten minutes, or jumps, keep and lose their leases like any other. */

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { isDeep } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { cleaned } from '../support/cleaned.ts'
import { controlProcess } from '../support/control-process.ts'
import { talkTo } from '../support/control-server.ts'
import { testPlane } from '../worker/plane-port.ts'
import { workerPlace } from '../worker/worker-place.ts'

const root = join(import.meta.dir, '../../..')
const tenMinutes = 600_000
/** Long enough for a busy machine to send its beats in time. */
const leaseSeconds = 4
const sleepSeconds = uniqueSeconds()
const result = `echo '{"type":"result","ok":true,"output":"done"}'`

describe.if(needs('bwrap', 'socat'))('a worker whose clock', () => {
  const cleanups = cleaned()

  test('is ten minutes fast, slow, or jumps between both holds its lease for a run that is longer than a lease', async () => {
    const home = mkdtempSync(join(tmpdir(), 'control-clock-'))
    cleanups.push(() => rmSync(home, { recursive: true, force: true }))
    const daemon = await controlProcess({ home })
    cleanups.push(daemon.kill)
    const client = talkTo(daemon.url).client()
    const everyClock = [
      ['fast', { WRONG_CLOCK_MS: String(tenMinutes) }],
      ['slow', { WRONG_CLOCK_MS: String(-tenMinutes) }],
      ['jumping', { WRONG_CLOCK_MS: String(tenMinutes), WRONG_CLOCK_JUMPS: '1' }],
    ] as const
    const clocks = isDeep ? everyClock : everyClock.slice(-1)
    const work = clocks.map(async ([agent, env]) => {
      await client.fleet.add({ id: agent, role: agent })
      const { key } = await client.fleet.newKey(agent)
      const { task_id } = await client.tasks.create({ title: 'look', role: agent, max_attempts: 1 })
      const at = nest()
      cleanups.push(() => at[Symbol.dispose]())
      const began = Date.now()
      const end = await skewedWorker({
        env: { ...at.env, ...env, CONTROLPLANE_API_URL: daemon.url, CONTROLPLANE_API_KEY: key },
        cwd: at.workspace,
        words: ['--agent', agent, '--role', agent, '--lease', String(leaseSeconds), '--once', '--runner', 'command'],
        script: `sleep ${1.5 * leaseSeconds}; ${result}`,
      })
      expect(end).toMatchObject({ code: 0 })
      const task = await client.tasks.get(task_id)
      expect(task).toMatchObject({ status: 'completed', attempt: 1, result: { output: 'done' } })
      const run = await client.runs.get(task.run_id ?? '')
      expect(run).toMatchObject({ state: 'completed', agent_id: agent, attempt: 1 })
      // The daemon stores times of its own clock.
      expect(Date.parse(run.began_at)).toBeGreaterThan(began - 1_000)
      expect(Date.parse(run.ended_at ?? '')).toBeLessThan(Date.now() + 1_000)
      // The clock was wrong indeed: what the worker signs has its time.
      return Math.round(Math.abs(Date.parse(String(run.manifest?.began_at)) - Date.parse(run.began_at)) / 60_000)
    })
    expect(await Promise.all(work)).toEqual(clocks.map(() => 10))
    const runs = (await client.runs.list({ limit: 50 })).runs
    expect(runs.map(({ state }) => state)).toEqual(clocks.map(() => 'completed'))
  }, 120_000)

  test.each(isDeep ? [tenMinutes, -tenMinutes] : [tenMinutes])(
    'jumps by %d ms in mid-run loses its lease when it is over, neither sooner nor later',
    async (jumpMs) => {
      const plane = await testPlane({ leaseSeconds })
      const place = await workerPlace()
      cleanups.push(plane.close, place.close)
      const port = await plane.agent()
      await plane.add()
      const clock = { errorMs: 0 }
      const worker = place.worker(port, `trap '' TERM; sleep ${sleepSeconds}`, {
        once: true,
        leaseSeconds,
        clock: { now: () => Date.now() + clock.errorMs, monotonic: () => performance.now(), random: Math.random },
      })
      const ended = worker.run()
      await until(() => plane.line.calls.filter((call) => call === 'beat').length >= 1)
      clock.errorMs = jumpMs
      await until(() => plane.line.calls.filter((call) => call === 'beat').length >= 2)
      expect((await plane.run()).state).toBe('running')
      plane.line.cut = true
      await until(() => sleeperOf(sleepSeconds) === undefined)
      // A wrong clock would end it at once, or in ten minutes. The worker counts from when it sent its beat, and keeps a twentieth to end it.
      expect(performance.now() - plane.line.beatSentMs).toBeGreaterThanOrEqual(leaseSeconds * 950)
      plane.line.cut = false
      expect(await ended).toBe('lost')
    },
    120_000,
  )
})

type Skewed = {
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly words: readonly string[]
  readonly script: string
}

/** As bin/braidclaw starts it, with the wrong clock loaded first. */
async function skewedWorker({ env, cwd, words, script }: Skewed): Promise<{ readonly code: number; readonly stderr: string }> {
  const bun = ['--config=/dev/null', `--tsconfig-override=${root}/tsconfig.json`, '--no-env-file', '--no-install']
  const clock = ['--preload', join(import.meta.dir, '../support/wrong-clock.ts')]
  const child = Bun.spawn(
    [process.execPath, ...bun, ...clock, join(root, 'src/main.ts'), '--', 'control', 'worker', ...words, '--', '/bin/sh', '-c', script],
    { env, cwd, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', timeout: 60_000, killSignal: 'SIGKILL' },
  )
  const stderr = await new Response(child.stderr).text()
  return { code: await child.exited, stderr }
}
