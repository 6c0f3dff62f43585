/** The network between a worker and its control plane is cut in mid-run: the task has one holder at any time, and what comes late is refused. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createControlClient } from '../../../src/control/client/control-client.ts'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import { sleep } from '../../../src/kit/abort.ts'
import { nest, type Started } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { isDeep } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { operatorToken } from '../support/control-server.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabases } from '../support/postgres-of-file.ts'
import { canLinkMachines, twoMachines } from '../support/two-machines.ts'

const leaseSeconds = 4
const engines = isDeep ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const)
const possible = needs('bwrap', 'curl') && canLinkMachines() && (!isDeep || hasPostgres())
const server = isDeep && possible ? sharedDatabases() : undefined
// At once: most of the time they wait.
test.concurrent.if(possible).each(engines)(
  'a cut link: the child ends with its lease, another worker does the task, and nothing of the first one counts (%s)',
  async (engine) => {
    const sleepSeconds = uniqueSeconds() + (engine === 'postgres' ? 1 : 0)
    /** It ignores SIGTERM, as its sleep does. */
    const stubborn = `trap '' TERM; sleep ${sleepSeconds}`
    const folder = mkdtempSync(join(tmpdir(), 'control-link-'))
    using daemonSide = nest()
    using workerSide = nest()
    await using machines = await twoMachines(folder)
    const started: Started[] = []
    const postgres = engine === 'postgres' ? server?.() : undefined
    try {
      if (postgres) await machines.bring(postgres.socket, postgres.port)
      const url = await postgres?.createDatabase()
      const settings = { CONTROLPLANE_OPERATOR_TOKEN: operatorToken, ...(url ? { CONTROLPLANE_DATABASE_URL: url } : {}) }
      const daemon = daemonSide.start(['control', '--host', '0.0.0.0', '--port', '0'], {
        ...{ env: settings, through: machines.first, timeoutMs: 120_000 },
      })
      started.push(daemon)
      const { port } = new URL(await daemon.says(/ready: (https?:\/\/\S+?) /))
      const here = { url: `http://127.0.0.1:${port}`, fetch: await machines.asker(Number(port)), sleep, random: Math.random }
      const client = createControlClient({ ...here, token: () => operatorToken })
      const events: ControlEvent[] = []
      const leaving = new AbortController()
      const following = (async () => {
        for await (const event of client.events.follow({ after: 0 }, leaving.signal)) events.push(event)
      })().catch(() => undefined)

      const work = async (agent: string, where: 'near' | 'far', script: string): Promise<Started> => {
        await client.fleet.add({ id: agent, role: 'sysadmin' })
        const { key } = await client.fleet.newKey(agent)
        const words = ['control', 'worker', '--agent', agent, '--role', 'sysadmin', '--runner', 'command', '--lease', String(leaseSeconds)]
        const address = where === 'near' ? '127.0.0.1' : machines.address
        const worker = (where === 'near' ? daemonSide : workerSide).start([...words, '--', '/bin/sh', '-c', script], {
          env: { CONTROLPLANE_API_URL: `http://${address}:${port}`, CONTROLPLANE_API_KEY: key },
          ...{ through: where === 'near' ? machines.first : machines.second, timeoutMs: 120_000 },
        })
        started.push(worker)
        return worker
      }

      const { task_id } = await client.tasks.create({ title: 'look', role: 'sysadmin' })
      const far = await work('far', 'far', stubborn)
      const sleeper = await until(async () => sleeperOf(sleepSeconds))
      const token = /CONTROLPLANE_API_KEY=(cpr_[^\0]+)/.exec(readFileSync(`/proc/${sleeper}/environ`, 'latin1'))?.[1] ?? ''
      expect(token).not.toBe('')
      const first = await client.tasks.get(task_id)
      // The link works: a beat over it makes the lease longer.
      await until(async () => (await client.tasks.get(task_id)).lease_until !== first.lease_until)
      expect(await client.tasks.get(task_id)).toMatchObject({ status: 'running', run_id: 'RUN-001', attempt: 1 })

      await machines.cut()
      const lease = Date.parse((await client.tasks.get(task_id)).lease_until ?? '')
      const near = await work('near', 'near', `echo '{"type":"result","ok":true,"output":"second"}'`)
      await until(async () => sleeperOf(sleepSeconds) === undefined)
      const ended = Date.now()
      const done = await until(async () => {
        const task = await client.tasks.get(task_id)
        return task.status === 'completed' && task
      })
      expect(done).toMatchObject({ run_id: 'RUN-002', attempt: 2, result: { output: 'second' } })
      const [lost, second] = [await client.runs.get('RUN-001'), await client.runs.get('RUN-002')]
      // The worker does not wait for the five seconds that a stopped child may otherwise have. Two are for a busy machine.
      expect(ended).toBeLessThanOrEqual(lease + 2_000)
      expect(Date.parse(second.began_at)).toBeGreaterThanOrEqual(lease)
      expect(lost).toMatchObject({ state: 'lost', changes: null, manifest: null, artifacts: [] })

      await machines.mend()
      await far.says('the result of the run was dropped')
      expect(
        await lateWrites({ through: machines.second, api: `http://${machines.address}:${port}/api/controlplane`, token, task_id }),
      ).toEqual(Array(9).fill('409'))
      expect(await client.tasks.get(task_id)).toEqual(done)
      expect(await client.runs.get('RUN-001')).toEqual(lost)
      expect((await client.tasks.list({ limit: 10 })).counts).toEqual({ completed: 1 })
      // The worker that was away goes on with what is there next.
      kill(near.pid)
      const next = await client.tasks.create({ title: 'next', role: 'sysadmin', agent_id: 'far' })
      await until(() => events.some((event) => event.task_id === next.task_id && event.type === 'task.claimed'))
      leaving.abort()
      await following
      expect(events.map(({ id }) => id)).toEqual(events.map((_, at) => at + 1))
      const story = events.filter((event) => event.task_id === task_id && event.type.startsWith('task.'))
      expect(story.map(({ type, run_id }) => `${type} ${run_id ?? ''}`)).toEqual([
        'task.created ',
        'task.claimed RUN-001',
        'task.lease_expired RUN-001',
        'task.claimed RUN-002',
        'task.completed RUN-002',
      ])
      expect(await problemsIn(url ? inPostgres(url) : inSqlite(join(daemonSide.home, '.braidclaw/control/control.sqlite')))).toEqual([])
    } finally {
      for (const { pid } of started) kill(pid)
      await Promise.all(started.map(({ result }) => result))
      rmSync(folder, { recursive: true, force: true })
    }
  },
  120_000,
)

type Late = { readonly through: readonly string[]; readonly api: string; readonly token: string; readonly task_id: string }

/** Everything that a run can write, over the mended link with the token of the lost run. @returns the statuses */
async function lateWrites({ through, api, token, task_id }: Late): Promise<readonly string[]> {
  const completed = { event_type: 'task_completed', task_id, agent_id: 'far', skill_executed: 'late' }
  const posts: readonly (readonly [path: string, body: unknown, method?: string])[] = [
    [`tasks/${task_id}/beat`, {}],
    [`tasks/${task_id}/release`, { outcome: 'failed', error: 'late' }],
    [`tasks/${task_id}/effects`, { key: 'late' }],
    [`tasks/${task_id}/effects/late/done`, { result: 'late' }],
    ['activity', { ...completed, result: { status: 'success', output: 'late', tokens_used: 7 } }],
    ['budget/reserve', { tokens: 7 }],
    ['runs/RUN-001/log', { at: 0, piece: 'late' }],
    ['runs/RUN-001/deliver', { changes: 'waiting' }],
    ['runs/RUN-001/artifacts/late.txt', { digest: 'a'.repeat(64), body: 'bGF0ZQ==' }, 'PUT'],
  ]
  const ask = async ([path, body, method = 'POST']: (typeof posts)[number]) => {
    const words = ['-s', '-m', '30', '-o', '/dev/null', '-w', '%{http_code}', '-X', method, '-d', JSON.stringify(body)]
    const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Content-Type: application/json']
    return new Response(Bun.spawn([...through, 'curl', ...words, ...headers, `${api}/${path}`], { stderr: 'ignore' }).stdout).text()
  }
  return Promise.all(posts.map(ask))
}

type Rows = (sql: string) => Promise<readonly unknown[]>

const inSqlite =
  (path: string): Rows =>
  async (sql) => {
    using db = new Database(path, { readonly: true })
    return db.query(sql).all()
  }

const inPostgres =
  (url: string): Rows =>
  async (sql) => {
    await using db = new Bun.SQL({ url, max: 1 })
    return [...(await db.unsafe(sql))]
  }

/** The invariants, read from the rows. */
async function problemsIn(rows: Rows): Promise<readonly unknown[]> {
  const found = [
    // I1: the runs of a task follow each other.
    'SELECT a.id, b.id AS other FROM runs a JOIN runs b ON b.task_id = a.task_id AND b.id > a.id AND b.began_at < COALESCE(a.ended_at, 9e15)',
    // I3: the task of the cut link has ended.
    "SELECT id, status FROM tasks WHERE id = 1 AND status <> 'completed'",
    // I4: exactly one run completed it, and it was the second.
    "SELECT id, state FROM runs WHERE task_id = 1 AND (state = 'completed') <> (id = 2)",
    'SELECT * FROM effects',
    'SELECT * FROM reservations',
  ].map(rows)
  return (await Promise.all(found)).flat()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}
