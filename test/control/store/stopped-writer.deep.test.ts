import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { cleaned } from '../support/cleaned.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabases } from '../support/postgres-of-file.ts'
import { anna, draft, runCaller, taskPlane } from '../support/task-plane.ts'

describe.if(hasPostgres())('PostgreSQL', () => {
  const server = sharedDatabases()
  const cleanups = cleaned()

  test('a daemon that is stopped while it holds the writer lock: another one takes over, and what the first one writes late is refused', async () => {
    const url = await server().createDatabase()
    const store = await openPostgres({ url, log: () => {} })
    cleanups.push(() => store.close())
    const plane = await taskPlane(store, { now: Date.now })
    await plane.addAgent('early')
    await plane.addAgent('late')
    await plane.tasks.create(anna, draft())
    const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/stopping-writer.ts'), url, 'early'], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    cleanups.push(() => child.kill('SIGKILL'))
    await until(() => stateOf(child.pid) === 'T')
    const claim = await plane.mustClaim('late', { wait_ms: 25_000 })
    expect(claim).toMatchObject({ attempt: 2, task: { task_id: 'TASK-001' } })
    await plane.complete(runCaller(claim, 'late'), 'TASK-001', { output: 'in time' })
    child.kill('SIGCONT')
    expect(await new Response(child.stdout).text()).toBe('lease_lost\n')
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'completed', run_id: 'RUN-002', result: { output: 'in time' } })
    expect(await plane.all('SELECT agent_id, state FROM runs ORDER BY id')).toEqual([
      { agent_id: 'early', state: 'lost' },
      { agent_id: 'late', state: 'completed' },
    ])
    expect(await plane.types()).toEqual(['task.created', 'task.claimed', 'task.lease_expired', 'task.claimed', 'task.completed'])
  }, 90_000)

  /** As /proc says: T is stopped. */
  function stateOf(pid: number): string | undefined {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
  }

  async function until(holds: () => boolean): Promise<void> {
    for (const end = performance.now() + 30_000; performance.now() < end && !holds(); await Bun.sleep(10));
    expect(holds()).toBe(true)
  }
})
