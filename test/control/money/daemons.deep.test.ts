/** Several daemons over one PostgreSQL: what must hold when they act at the same moment. */

import { describe, expect, test } from 'bun:test'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import type { Command } from '../../../src/control/contract/store-port.ts'
import { claimRequest, scheduleDraft } from '../../../src/control/contract/task-shapes.ts'
import { revokeOperator } from '../../../src/control/plane/access-plane.ts'
import { revokeKey } from '../../../src/control/plane/fleet-plane.ts'
import { fireSchedules } from '../../../src/control/plane/schedules.ts'
import { changeBudget } from '../../../src/control/plane/spending.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { dice } from '../../support/dice.ts'
import { until } from '../../support/until.ts'
import { cleaned } from '../support/cleaned.ts'
import { codeOf, type MoneyPlane, moneyPlane, type RunOf, seedCaller } from '../support/money-plane.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabases } from '../support/postgres-of-file.ts'
import { anna, draft } from '../support/task-plane.ts'

describe.if(hasPostgres())('several daemons', () => {
  const server = sharedDatabases()
  const cleanups = cleaned()

  async function daemons(database?: string): Promise<readonly [MoneyPlane, MoneyPlane, MoneyPlane]> {
    const url = database ?? (await server().createDatabase())
    const opened = async () => {
      const store = await openPostgres({ url, log: () => {} })
      cleanups.push(() => store.close())
      return await moneyPlane(store)
    }
    return [await opened(), await opened(), await opened()]
  }

  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

  test('a follower at one daemon gets what another daemon commits, in order and without a gap', async () => {
    const planes = await daemons()
    const total = 240
    const note = (plane: MoneyPlane) => plane.activity(seedCaller, { event_type: 'error', agent_id: 'a1', error_message: 'one' })
    await planes[0].addAgent('a1', { role: 'orchestrator' })
    const followers = planes.map(async (plane) => {
      const found: ControlEvent[] = []
      const stop = new AbortController()
      for await (const event of plane.events.follow(anna, { after: 1 }, stop.signal)) if (found.push(event) === total) stop.abort()
      return found.map(({ id }) => id)
    })
    await Promise.all(
      planes.map(async (plane) => {
        for (const _ of numbers(1, 20)) await Promise.all(numbers(1, 4).map(() => note(plane)))
      }),
    )
    const seen = await Promise.all(followers)
    const kept = (await planes[0].rows('SELECT id FROM events WHERE id > 1 ORDER BY id')).map((row) => Number(row.id))
    expect(kept).toHaveLength(total)
    for (const ids of seen) expect(ids).toEqual(kept)
  }, 120_000)

  test('a follower goes on after all connections were cut', async () => {
    const url = await server().createDatabase()
    const [one, two] = await daemons(url)
    await one.addAgent('a1', { role: 'orchestrator' })
    const note = () => two.activity(seedCaller, { event_type: 'error', agent_id: 'a1', error_message: 'one' })
    const stop = new AbortController()
    const stream = one.events.follow(anna, { after: 0 }, stop.signal)[Symbol.asyncIterator]()
    expect((await stream.next()).value?.type).toBe('agent.added')
    const waiting = stream.next()
    await server().cutConnections(url)
    await note()
    const found = [(await waiting).value?.id]
    for (const _ of numbers(1, 3)) {
      await note()
      found.push((await stream.next()).value?.id)
    }
    expect(found).toEqual(numbers(2, 5))
    stop.abort()
  }, 120_000)

  test('no limit is exceeded at any moment while three daemons reserve, settle and lose runs', async () => {
    const planes = await daemons()
    const limit = 2_000
    await planes[0].budget.set(anna, { daily_tokens: limit, allocation: { sysadmin: 1_500 } })
    for (const id of ['a1', 'b1', 'c1']) await planes[0].addAgent(id, { daily_tokens: 900 })
    const runs = await Promise.all(numbers(0, 11).map((at) => startAt(planes, at)))
    const spent = { settled: 0, isOver: false, looks: 0 }
    const watch = (async () => {
      while (!spent.isOver) {
        const rows = await planes[2].rows('SELECT scope, spent + reserved AS used FROM budget_days')
        for (const row of rows) expect(Number(row.used)).toBeLessThanOrEqual(limitOf(String(row.scope), limit))
        spent.looks += 1
      }
    })()
    await Promise.all(
      runs.map((run, at) => spend(planes[at % 3] ?? planes[0], { run, roll: dice(at), add: (tokens) => (spent.settled += tokens) })),
    )
    spent.isOver = true
    await watch
    const [all] = await planes[0].rows("SELECT spent, reserved FROM budget_days WHERE scope = '*'")
    const [ledger] = await planes[0].rows('SELECT SUM(tokens) AS value FROM ledger')
    expect(Number(all?.reserved)).toBe(0)
    expect(Number(ledger?.value)).toBe(Number(all?.spent))
    expect(Number(all?.spent)).toBeGreaterThanOrEqual(spent.settled)
    expect(spent.settled).toBeGreaterThan(500)
    expect(spent.looks).toBeGreaterThan(5)
  }, 120_000)

  function limitOf(scope: string, all: number): number {
    if (scope === '*') return all
    return scope === 'role:sysadmin' ? 1_500 : 900
  }

  async function startAt(planes: readonly MoneyPlane[], at: number): Promise<RunOf> {
    const plane = planes[at % 3] ?? planes[0]
    if (!plane) throw new Error('no daemon')
    await plane.tasks.create(anna, draft({ title: `t${at}` }))
    return await plane.claimRun(['a1', 'b1', 'c1'][at % 3])
  }

  type Spending = { readonly run: RunOf; readonly roll: (end: number) => number; readonly add: (tokens: number) => void }

  /** Reserves and settles until its budget is used up, or it ends itself. */
  async function spend(plane: MoneyPlane, { run, roll, add }: Spending): Promise<void> {
    for (const _ of numbers(1, 25)) {
      const tokens = 1 + roll(60)
      const made = await plane.budget.reserve(run.caller, { tokens, purpose: '' }).catch(() => undefined)
      if (!made) continue
      const part = roll(tokens + 1)
      await plane.budget.settle(run.caller, { reservation_id: made.reservation_id, tokens: part, model: '' })
      add(part)
    }
  }

  /** A command whose transaction stays open for a while after its work. */
  function* slowly<T>(command: Command<T>): Command<T> {
    const value = yield* command
    yield ['SELECT pg_sleep(0.4)']
    return value
  }

  /** Until that transaction is under way, or over: on a busy machine nobody may have looked meanwhile. */
  async function isUnderWay(plane: MoneyPlane, work: Promise<unknown>): Promise<void> {
    const state = { isOver: false }
    const end = () => {
      state.isOver = true
    }
    work.then(end, end)
    const asleep = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    await until(async () => state.isOver || (await plane.rows(asleep)).length > 0)
  }

  test('no task keeps waiting for budget when the limit is raised at the moment when it begins to wait', async () => {
    const [one, two] = await daemons()
    await one.addAgent('a1')
    await one.budget.set(anna, { daily_tokens: 10 })
    await one.activity(seedCaller, { event_type: 'error', agent_id: 'a1', error_message: 'x', tokens_used: 9 })
    const run = await one.startRun('a1')
    const raised = two.store.write(() => slowly(changeBudget(two.context, { operator: anna, patch: { daily_tokens: 100 } })))
    await isUnderWay(one, raised)
    expect(await codeOf(one.budget.reserve(run.caller, { tokens: 5, purpose: '' }))).toBe('done')
    await raised
    expect((await one.tasks.get(anna, run.claim.task.task_id)).status).toBe('running')
  })

  test('a decision at two daemons at once is made once, and an approval is used once', async () => {
    const [one, two, three] = await daemons()
    await one.addAgent('a1')
    const run = await one.startRun()
    await two.activity(run.caller, { event_type: 'approval_request', agent_id: 'a1', operation: 'merge' })
    const decide = (plane: MoneyPlane, decision: 'approve' | 'reject') =>
      codeOf(plane.approvals.decide(anna, 'APPR-001', { decision, note: '' }))
    expect((await Promise.all([decide(one, 'approve'), decide(two, 'approve'), decide(three, 'approve')])).sort()).toEqual([
      'already_decided',
      'already_decided',
      'done',
    ])
    expect((await one.types()).filter((type) => type === 'task.woken')).toHaveLength(1)
    const again = await two.claimRun()
    const uses = await Promise.all([one, two, three].map((plane) => codeOf(plane.approvals.use(again.caller, 'APPR-001'))))
    expect(uses.sort()).toEqual(['conflict', 'conflict', 'done'])
  })

  test('of two operators that revoke each other at two daemons one stays', async () => {
    const [one, two] = await daemons()
    const [ben, cleo] = [await one.access.newOperator(anna, 'ben'), await one.access.newOperator(anna, 'cleo')]
    const first = two.store.write(() => slowly(revokeOperator(two.context, { caller: anna, id: ben.id })))
    await isUnderWay(one, first)
    expect(await codeOf(one.access.revokeOperator(anna, cleo.id))).toBe('conflict')
    expect((await first).id).toBe(ben.id)
  })

  test('a claim that waited while its key was revoked gets nothing', async () => {
    const [one, two] = await daemons()
    await one.addAgent('a1')
    const { key, key_id } = await one.fleet.newKey(anna, 'a1')
    const caller = await one.access.callerOf(key)
    if (!caller) throw new Error('no caller')
    const revoked = two.store.write(() => slowly(revokeKey(two.context, { actor: 'test', id: 'a1', keyId: key_id })))
    await isUnderWay(one, revoked)
    expect(
      await codeOf(one.tasks.claim(caller, claimRequest.parse({ role: 'sysadmin', agent_id: 'a1' }), new AbortController().signal)),
    ).toBe('unauthorized')
    await revoked
  })

  test('what one daemon revokes fails at another one at the next request', async () => {
    const [one, two] = await daemons()
    await one.addAgent('a1')
    const { key, key_id } = await one.fleet.newKey(anna, 'a1')
    const [ben, cleo] = [await one.access.newOperator(anna, 'ben'), await one.access.newOperator(anna, 'cleo')]
    const { claim } = await two.startRun()
    for (const secret of [key, ben.token, claim.run_token]) expect(await two.access.callerOf(secret)).toBeDefined()
    await one.fleet.revokeKey(anna, 'a1', key_id)
    await one.access.revokeOperator(anna, ben.id)
    expect(await two.access.callerOf(key)).toBeUndefined()
    expect(await two.access.callerOf(ben.token)).toBeUndefined()
    expect(await codeOf(two.access.callerOf(claim.run_token))).toBe('lease_lost')
    expect((await two.access.callerOf(cleo.token))?.id).toBe(cleo.id)
  })

  test('three daemons that look at the clock together make one task', async () => {
    const planes = await daemons()
    await planes[0].schedules.add(anna, scheduleDraft.parse({ name: 'nightly', cron: '0 2 * * *', task: draft({ title: 'vacuum' }) }))
    for (const plane of planes) plane.clock.at = Date.parse('2026-04-08T02:00:00Z')
    await Promise.all(planes.flatMap((plane) => [fireSchedules(plane.context), fireSchedules(plane.context)]))
    await fireSchedules(planes[0].context)
    expect(await planes[0].rows('SELECT id FROM tasks')).toHaveLength(1)
  })
})
