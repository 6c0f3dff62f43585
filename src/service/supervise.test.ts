import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SuperviseOptions, supervise } from './supervise.ts'

/** Waits return at once and are recorded; the test controls the clock. */
function stage(command: string, more: Partial<SuperviseOptions> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-supervise-'))
  const waits: number[] = []
  const reports: { event: string; [key: string]: unknown }[] = []
  const heard: string[] = []
  const clock = { ms: 0 }
  const supervised = supervise({
    name: 'brain',
    command,
    cwd: dir,
    env: { PATH: '/usr/bin:/bin' },
    report: (_level, event, fields) => void reports.push({ event, ...fields }),
    onLine: (line) => void heard.push(line),
    now: () => clock.ms,
    sleep: async (ms, signal) => {
      waits.push(ms)
      clock.ms += ms
      if (!signal.aborted) await Bun.sleep(1)
    },
    ...more,
  })
  return {
    ...supervised,
    dir,
    waits,
    reports,
    heard,
    clock,
    [Symbol.asyncDispose]: async () => {
      await supervised.stop(200)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000 && !holds(); tries++) await Bun.sleep(5)
  expect(holds()).toBe(true)
}

const alive = (pid: number) => existsSync(`/proc/${pid}`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))

test('what ends at once is started again, later and later, up to a minute', async () => {
  await using at = stage('exit 3')
  await until(() => at.waits.length > 8)
  expect(at.waits.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000))
})

test('each of its first ends is reported, then one a minute with their number', async () => {
  await using at = stage('exit 3')
  await until(() => at.waits.length > 9)
  const ends = at.reports.filter(({ event }) => event === 'bridge ended')
  expect(ends[0]).toMatchObject({ bridge: 'brain', how: 'exit code 3', againInMs: 1000 })
  expect(ends.length).toBeLessThan(at.waits.length)
  expect(ends.reduce((sum, { ends }) => sum + Number(ends), 0)).toBeLessThanOrEqual(at.waits.length)
})

test('after a steady minute the next wait is the shortest again', async () => {
  await using at = stage('echo up; while [ ! -e go ]; do sleep 0.01; done; rm go; exit 1')
  const end = async (waits: number) => {
    await until(() => at.heard.length === waits)
    writeFileSync(join(at.dir, 'go'), '')
    await until(() => at.waits.length === waits)
  }
  for (const waits of [1, 2, 3]) await end(waits)
  await until(() => at.heard.length === 4)
  at.clock.ms += 61_000
  await end(4)
  expect(at.waits).toEqual([1000, 2000, 4000, 1000])
})

test('after it has done its work too; each end is told with the wait, also of what cannot be started', async () => {
  const ends: number[] = []
  const worked = () => ends.length > 2 && ends.length < 5
  await using at = stage('exit 1', { worked, ended: (againInMs) => void ends.push(againInMs) })
  await until(() => ends.length > 6)
  expect(ends.slice(0, 7)).toEqual([1000, 2000, 4000, 1000, 1000, 2000, 4000])
  expect(at.waits.slice(0, 6)).toEqual(ends.slice(0, 6))
})

test('what it says is heard line by line, and a command that is none is only reported', async () => {
  await using at = stage('echo out; echo err >&2; printf "no newline"; exit 0')
  await until(() => at.heard.includes('no newline'))
  expect(at.heard).toContain('out')
  expect(at.heard).toContain('err')
  await using none = stage('/no/such/program')
  await until(() => none.reports.some(({ event, how }) => event === 'bridge ended' && how === 'exit code 127'))
})

test('stop ends it with its children, also one that does not listen to SIGTERM', async () => {
  await using at = stage('sleep 600 & echo $! > child; trap "" TERM; echo ready; while :; do sleep 600; done')
  await until(() => at.heard.includes('ready'))
  const [leader, child] = [at.pid() ?? 0, Number(readFileSync(join(at.dir, 'child'), 'utf8'))]
  expect([alive(leader), alive(child)]).toEqual([true, true])
  await at.stop(100)
  await until(() => !alive(leader) && !alive(child))
  expect(at.reports.filter(({ event }) => event === 'bridge started')).toHaveLength(1)
})

test('children of a leader that ended do not outlive it', async () => {
  await using at = stage('sleep 600 & echo $! > child; exit 0')
  await until(() => at.waits.length > 0)
  const child = Number(readFileSync(join(at.dir, 'child'), 'utf8'))
  await at.stop(100)
  await until(() => !alive(child))
})

test('should we be killed, it ends with its children, also those in the background', async () => {
  await using at = stage('exit 0')
  const script = `import { supervise } from ${JSON.stringify(join(import.meta.dir, 'supervise.ts'))}
    const [cwd = '', command = ''] = process.argv.slice(-2)
    const idle = () => {}
    supervise({ name: 'x', command, cwd, env: { PATH: '/usr/bin:/bin' }, report: idle, hear: idle, now: () => 0, sleep: Bun.sleep })`
  const command = '(trap "" TERM; echo $$ > leader; sleep 600 & echo $! > child; wait) & sleep 600 & echo $! > other; wait'
  const parent = Bun.spawn([process.execPath, '-e', script, '--', at.dir, command], { stdio: ['ignore', 'ignore', 'inherit'] })
  const noted = (name: string) => (existsSync(join(at.dir, name)) ? Number(readFileSync(join(at.dir, name), 'utf8')) : 0)
  await until(() => noted('child') > 0 && noted('other') > 0)
  const pids = [noted('child'), noted('other')]
  expect(pids.map(alive)).toEqual([true, true])
  parent.kill('SIGKILL')
  await parent.exited
  await until(() => !pids.some(alive))
})
