import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command, Store } from '../../../src/control/contract/store-port.ts'
import { readEvents } from '../../../src/control/plane/events.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import { agentCaller, anna, draft, query, runCaller, taskPlane } from '../support/task-plane.ts'

/** The texts of all statements that commands send. */
function listening(store: Store): { readonly store: Store; readonly statements: Set<string> } {
  const statements = new Set<string>()
  function* heard<T>(command: () => Command<T>): Command<T> {
    const inner = command()
    for (let step = inner.next([]); ; ) {
      if (step.done) return step.value
      statements.add(step.value[0])
      step = inner.next(yield step.value)
    }
  }
  const write: Store['write'] = (command) => store.write(() => heard(command))
  const read: Store['read'] = (command) => store.read(() => heard(command))
  return { store: { ...store, write, read }, statements }
}

test('creating, claiming, beating, completing and sweeping never look at all tasks, or at all of a status', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'control-plans-'))
  const path = join(folder, 'control.sqlite')
  const inner = await openSqlite({ path, log: () => {} })
  const { store, statements } = listening(inner)
  const plane = await taskPlane(store)
  await plane.addAgent('a1')
  await plane.tasks.create(anna, draft())
  await plane.tasks.create(agentCaller('a1'), draft({ role: 'other', labels: ['x', 'y'] }))
  await plane.tasks.create(anna, draft({ depends_on: ['TASK-001'], labels: ['x'] }))
  const run = runCaller(await plane.mustClaim())
  await plane.tasks.beat(run, 'TASK-001')
  await plane.complete(run, 'TASK-001', { tokensUsed: 5 })
  await plane.tasks.release(runCaller(await plane.mustClaim()), 'TASK-003', { outcome: 'retry' })
  await plane.claim()
  await plane.claim('a1', { labels: ['x', 'y'] })
  await plane.tasks.tick()
  for (const filter of [{ type: 'agent.error' }, { run_id: 1 }, { type: 'agent.error', agent_id: 'a1' }])
    await store.read(() => readEvents({ filter, limit: 50 }))
  const ofWork = new Set(statements)
  await plane.tasks.list(anna, query({ q: 'x', order: 'queue', brief: true }))
  await inner.close()
  const database = new Database(path, { readonly: true })
  const plansOf = (some: readonly string[]) =>
    some
      .filter((sql) => /^\s*(?:SELECT|UPDATE|DELETE)/.test(sql))
      .flatMap((sql) =>
        database
          .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
          .all()
          .map(({ detail }) => `${detail} <- ${sql}`),
      )
  const plans = plansOf([...ofWork])
  const inOrder = plansOf([...statements].filter((sql) => !ofWork.has(sql) && sql.includes('ORDER BY queue_at')))
  database.close()
  rmSync(folder, { recursive: true })
  expect(plans.length).toBeGreaterThan(15)
  expect(
    plans.filter((detail) =>
      /SCAN (?:tasks|runs|events|reservations|approvals|labels|place)\b|tasks_by_status(?! \(status=\? AND id=\?)/.test(detail),
    ),
  ).toEqual([])
  // A claim with labels begins with what has the label, and an agent's open tasks are counted in their own small index.
  const ofLabels = plans.filter((plan) => plan.includes('labels AS place') && /labels_queue|tasks_queue|tasks_of_agents/.test(plan))
  expect(ofLabels.length).toBeGreaterThan(0)
  expect(ofLabels.filter((plan) => !plan.startsWith('SEARCH place USING COVERING INDEX labels_queue'))).toEqual([])
  expect(plans.filter((plan) => plan.includes('AS counted') && plan.includes('tasks_open_of_creators'))).toHaveLength(1)
  // A page in the order of the queue reads that order from its index.
  expect(inOrder.map((plan) => plan.slice(0, plan.indexOf(' <- ')))).toEqual([
    'SCAN tasks USING COVERING INDEX tasks_by_place',
    'SCAN tasks USING INDEX tasks_by_place',
  ])
})
