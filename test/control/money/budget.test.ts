import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { rolloverBudget, wakeBlocked } from '../../../src/control/plane/spending.ts'
import { readyTopic } from '../../../src/control/plane/tasks/task-change.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane, type RunOf, refusalOf, seedCaller } from '../support/money-plane.ts'
import { ledgerSum, number, reserve, settle, statusOf, usedBy } from '../support/spend-tokens.ts'
import { agentCaller, anna, draft } from '../support/task-plane.ts'

async function planeWithRun(open: Parameters<Parameters<typeof forEachEngine>[1]>[0], daily: number | null) {
  const plane = await moneyPlane(await open())
  await plane.addAgent('a1')
  await plane.budget.set(anna, { daily_tokens: daily })
  return { plane, run: await plane.startRun() }
}

forEachEngine('budget', (open) => {
  test('is read and set by operators only, and reserved by runs only', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    for (const caller of [run.caller, agentCaller('a1'), seedCaller]) {
      expect(await codeOf(plane.budget.get(caller))).toBe('forbidden')
      expect(await codeOf(plane.budget.set(caller, { daily_tokens: null }))).toBe('forbidden')
    }
    for (const caller of [anna, agentCaller('a1'), seedCaller])
      for (const work of [plane.budget.reserve(caller, { tokens: 1, purpose: '' }), plane.budget.remaining(caller)])
        expect(await codeOf(work)).toBe('forbidden')
    expect(await plane.budget.remaining(run.caller)).toBe(100)
    for (const timezone of ['Europe/Nowhere', '2026-01-01T00:00[Europe/Berlin]', '2026-01-01T00:00+02:00', ''])
      expect([timezone, await codeOf(plane.budget.set(anna, { timezone }))]).toEqual([timezone, 'bad_request'])
    expect((await plane.budget.get(anna)).daily_tokens).toBe(100)
  })

  test('a refusal names the budget that has too little left, and reserves nothing in any of them', async () => {
    const { plane, run } = await planeWithRun(open, 1_000)
    await plane.budget.set(anna, { allocation: { sysadmin: 100 } })
    const { reservation_id } = await reserve(plane, run, 80)
    await settle(plane, run, reservation_id, 80)
    const refused = await refusalOf(reserve(plane, run, 50))
    expect(refused.code).toBe('budget_exceeded')
    expect(refused.details).toMatchObject({ scope: 'role:sysadmin', limit: 100, spent: 80, remaining: 20, asked: 50, shortage: 'spent' })
    for (const scope of ['*', 'role:sysadmin', 'agent:a1']) expect(await usedBy(plane, scope)).toEqual([80, 0])
    expect(number((await plane.rows('SELECT tokens_reserved FROM tasks'))[0], 'tokens_reserved')).toBe(0)
  })

  test('a task whose budget is used up waits without a lease, and goes on when an operator raises the limit', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    const { reservation_id } = await reserve(plane, run, 90)
    await settle(plane, run, reservation_id, 95)
    expect(await codeOf(reserve(plane, run, 50))).toBe('budget_exceeded')
    expect(await statusOf(plane, 'TASK-001')).toBe('budget_blocked')
    expect((await plane.runs.get(anna, run.claim.run_id)).state).toBe('waiting')
    expect(await codeOf(reserve(plane, run, 1))).toBe('lease_lost')
    expect((await plane.budget.set(anna, { daily_tokens: 95 })).blocked_tasks).toBe(1)
    expect((await plane.budget.set(anna, { daily_tokens: 500 })).blocked_tasks).toBe(0)
    const again = await plane.claimRun()
    expect((await reserve(plane, again, 50)).budget_remaining).toBe(355)
  })

  test('a raised limit wakes many tasks with a few statements, each at its place in the queue', async () => {
    const { plane } = await planeWithRun(open, 100)
    const many = Array.from({ length: 30 }, (_, at) => draft({ title: `task ${at}`, priority: at === 20 ? 'urgent' : 'medium' }))
    await plane.tasks.createMany(anna, many)
    await plane.store.write(function* () {
      yield ["UPDATE tasks SET status = 'budget_blocked', error = 'spent' WHERE title LIKE 'task%'"]
    })
    const heard = Promise.withResolvers<void>()
    const leave = plane.store.listen(readyTopic('sysadmin'), heard.resolve)
    const statements: string[] = []
    const woken = await plane.store.write(function* () {
      const waking = wakeBlocked(plane.context, 'clock')
      for (let step = waking.next([]); ; step = waking.next(yield step.value)) {
        if (step.done) return step.value
        if (!step.value[0].startsWith('--')) statements.push(step.value[0])
      }
    })
    await heard.promise
    leave()
    expect(woken).toBe(30)
    expect(statements.length).toBeLessThan(10)
    const [first, second] = [await plane.claimRun(), await plane.claimRun()]
    expect([first.claim.task.title, second.claim.task.title]).toEqual(['task 20', 'task 0'])
    expect(second.claim.task.error).toBeNull()
    const events = await plane.rows("SELECT task_id, actor, data FROM events WHERE type = 'task.woken' ORDER BY id")
    expect(events.map((event) => number(event, 'task_id'))).toEqual(many.map((_, at) => at + 2))
    expect(JSON.parse(String(events[0]?.data))).toEqual({
      ...{ title: 'task 0', status: 'pending', available_at: new Date(plane.context.now()).toISOString() },
    })
  })

  test('a raised limit of another role wakes nobody', async () => {
    const { plane, run } = await planeWithRun(open, null)
    await plane.budget.set(anna, { allocation: { sysadmin: 10, 'db-admin': 10 } })
    expect(await codeOf(settle(plane, run, (await reserve(plane, run, 10)).reservation_id, 10))).toBe('done')
    expect(await codeOf(reserve(plane, run, 5))).toBe('budget_exceeded')
    expect((await plane.budget.set(anna, { allocation: { sysadmin: 10, 'db-admin': 99 } })).blocked_tasks).toBe(1)
    expect((await plane.budget.set(anna, { allocation: { sysadmin: 11, 'db-admin': 99 } })).blocked_tasks).toBe(0)
  })

  test('while open reservations are in the way, or the request is above the limit, the run goes on', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    await reserve(plane, run, 60)
    const soon = await refusalOf(reserve(plane, run, 50))
    expect(soon.details).toMatchObject({ shortage: 'soon', retry_after_ms: 1_000 })
    expect((await refusalOf(reserve(plane, run, 101))).details.shortage).toBe('too_much')
    expect(await statusOf(plane, 'TASK-001')).toBe('running')
    expect((await reserve(plane, run, 40)).budget_remaining).toBe(0)
  })

  test('the limits of an agent and of a task bind too', async () => {
    const { plane } = await planeWithRun(open, null)
    await plane.addAgent('small', { daily_tokens: 50 })
    const [ofTask, ofAgent] = [await plane.startRun('a1', { budget_tokens: 30 }), await plane.startRun('small')]
    expect((await refusalOf(reserve(plane, ofTask, 31))).details).toMatchObject({ scope: 'task', limit: 30 })
    expect((await refusalOf(reserve(plane, ofAgent, 51))).details).toMatchObject({ scope: 'agent:small', limit: 50 })
    expect((await reserve(plane, ofTask, 30)).budget_remaining).toBe(0)
    expect((await reserve(plane, ofAgent, 20)).budget_remaining).toBe(30)
  })

  test('a settlement is counted once, as it was, also above the reservation', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    const { reservation_id } = await reserve(plane, run, 40)
    expect(await settle(plane, run, reservation_id, 130)).toEqual({ tokens: 130, budget_remaining: 0 })
    expect(await settle(plane, run, reservation_id, 130)).toEqual({ tokens: 130, budget_remaining: 0 })
    expect(await codeOf(settle(plane, run, reservation_id, 1))).toBe('conflict')
    expect(await usedBy(plane, '*')).toEqual([130, 0])
    expect(await plane.budget.get(anna)).toMatchObject({ spent_today: 130, remaining: 0, hard_limit_exceeded: true })
    expect(await codeOf(reserve(plane, run, 1))).toBe('budget_exceeded')
  })

  test('a run holds 256 reservations at once, and a refused one changes nothing', async () => {
    const { plane, run } = await planeWithRun(open, null)
    const codes = await Promise.all(Array.from({ length: 258 }, () => codeOf(reserve(plane, run, 1))))
    expect(codes.filter((code) => code !== 'done')).toEqual(['too_many', 'too_many'])
    expect(await usedBy(plane, '*')).toEqual([0, 256])
    expect(await plane.rows('SELECT tokens_reserved AS held FROM tasks')).toEqual([{ held: 256 }])
    await settle(plane, run, 'RSV-1', 1)
    expect(await codeOf(reserve(plane, run, 1))).toBe('done')
  })

  test('nobody settles the reservation of another run', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    await plane.addAgent('b1')
    const other = await plane.startRun('b1')
    const { reservation_id } = await reserve(plane, run, 40)
    expect(await codeOf(settle(plane, other, reservation_id, 0))).toBe('not_found')
    expect(await codeOf(settle(plane, run, "RSV-1' OR 1=1", 0))).toBe('not_found')
    expect(await usedBy(plane, '*')).toEqual([0, 40])
  })

  test('a lost lease forfeits what was reserved, and the true cost that comes late adds only what exceeds it', async () => {
    const { plane, run } = await planeWithRun(open, 1_000)
    const [small, large] = [await reserve(plane, run, 40), await reserve(plane, run, 40)]
    plane.clock.at += 61_000
    await plane.claimRun()
    expect(await usedBy(plane, '*')).toEqual([80, 0])
    await settle(plane, run, small.reservation_id, 5)
    await settle(plane, run, large.reservation_id, 100)
    expect(await usedBy(plane, '*')).toEqual([140, 0])
    expect(await ledgerSum(plane)).toBe(140)
  })

  test('a completion is the total of its run: nothing counts twice, and a late settlement only where it exceeds the total', async () => {
    const { plane, run } = await planeWithRun(open, 1_000)
    await settle(plane, run, (await reserve(plane, run, 100)).reservation_id, 60)
    const late = await reserve(plane, run, 100)
    const completion = { event_type: 'task_completed', task_id: 'TASK-001', agent_id: 'a1', result: { status: 'success', tokens_used: 90 } }
    await plane.activity(run.caller, completion)
    expect(await usedBy(plane, '*')).toEqual([90, 0])
    await settle(plane, run, late.reservation_id, 25)
    expect(await usedBy(plane, '*')).toEqual([90, 0])
    const { tokens_used } = await plane.runs.get(anna, run.claim.run_id)
    expect([tokens_used, (await plane.tasks.get(anna, 'TASK-001')).tokens_used, await ledgerSum(plane)]).toEqual([90, 90, 90])
  })

  test('a late settlement that is more than the total counts', async () => {
    const { plane, run } = await planeWithRun(open, 1_000)
    const late = await reserve(plane, run, 100)
    const completion = { event_type: 'task_completed', task_id: 'TASK-001', agent_id: 'a1', result: { status: 'success', tokens_used: 0 } }
    await plane.activity(run.caller, completion)
    await settle(plane, run, late.reservation_id, 70)
    expect([await usedBy(plane, '*'), await ledgerSum(plane)]).toEqual([[70, 0], 70])
  })

  test('a reservation belongs to the day on which it was made, and a new day wakes those who wait', async () => {
    const { plane, run } = await planeWithRun(open, 100)
    await plane.budget.set(anna, { timezone: 'Europe/Ljubljana' })
    await rolloverBudget(plane.context)
    // 2026-10-24 21:59:30 UTC is 23:59:30 in Ljubljana, on the eve of the day with 25 hours.
    plane.clock.at = Date.parse('2026-10-24T21:59:30Z')
    await rolloverBudget(plane.context)
    await plane.complete(anna, 'TASK-001')
    const late = await plane.startRun()
    const { reservation_id } = await reserve(plane, late, 80)
    const blocked = await plane.startRun('a1', { title: 'blocked' })
    await settle(plane, blocked, (await reserve(plane, blocked, 20)).reservation_id, 20)
    await plane.budget.set(anna, { daily_tokens: 90 })
    await settle(plane, late, reservation_id, 80)
    expect(await codeOf(reserve(plane, blocked, 5))).toBe('budget_exceeded')
    const over = await reserve(plane, late, 1).catch(() => undefined)
    expect(over).toBeUndefined()
    plane.clock.at = Date.parse('2026-10-24T22:00:10Z')
    await rolloverBudget(plane.context)
    const view = await plane.budget.get(anna)
    expect(view).toMatchObject({ day: '2026-10-25', next_day_at: '2026-10-25T23:00:00.000Z', spent_today: 0, blocked_tasks: 0 })
    expect(view.days.at(-2)).toEqual({ day: '2026-10-24', spent: 100, by_role: { sysadmin: 100 } })
    expect(view.days).toHaveLength(30)
    expect(run.claim.attempt).toBe(1)
  })

  test('the forecast goes on as since the day began', async () => {
    const { plane, run } = await planeWithRun(open, null)
    plane.clock.at = Date.parse('2026-04-07T10:30:20Z')
    await settle(plane, run, (await reserve(plane, run, 1_000)).reservation_id, 1_000)
    plane.clock.at = Date.parse('2026-04-07T12:00:00Z')
    expect(await plane.budget.get(anna)).toMatchObject({ forecast_today: 2_000, spent_today: 1_000, remaining: null })
  })

  test('spent and reserved stay within every limit at every commit, whatever runs do at the same time', async () => {
    const plane = await moneyPlane(await open())
    const limits = { all: 500, sysadmin: 300, 'db-admin': 300, a1: 200 }
    await plane.budget.set(anna, { daily_tokens: limits.all, allocation: { sysadmin: limits.sysadmin, 'db-admin': limits['db-admin'] } })
    for (const [id, role, daily_tokens] of [
      ['a1', 'sysadmin', limits.a1] as const,
      ['b1', 'sysadmin', null] as const,
      ['c1', 'db-admin', null] as const,
    ])
      await plane.addAgent(id, { role, daily_tokens })
    const step = fc.record({ run: fc.nat(7), tokens: fc.integer({ min: 1, max: 60 }), part: fc.integer({ min: 0, max: 100 }) })
    const settled = { tokens: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24 }), async (steps) => {
        plane.clock.at += 86_400_000
        await rolloverBudget(plane.context)
        const runs = await runsOf(plane)
        await Promise.all(
          steps.map(async ({ run: at, tokens, part }) => {
            const run = runs[at % runs.length]
            const made = run && (await reserve(plane, run, tokens).catch(() => undefined))
            if (!run || !made) return
            const spent = Math.floor((tokens * part) / 100)
            await settle(plane, run, made.reservation_id, spent)
            settled.tokens += spent
          }),
        )
        await assertWithin(plane, limits)
        expect(await ledgerSum(plane)).toBe((await usedBy(plane, '*'))[0])
        // What a run that had to stop had reserved counts as spent.
        expect(await ledgerSum(plane)).toBeGreaterThanOrEqual(settled.tokens)
      }),
      { numRuns: 12 },
    )
    expect(settled.tokens).toBeGreaterThan(100)
  }, 120_000)
})

/** Runs of three agents, each with its lease; those whose budget was used up are gone. */
async function runsOf(plane: MoneyPlane): Promise<readonly RunOf[]> {
  const [a, b, c] = [await plane.startRun('a1'), await plane.startRun('b1'), await plane.startRun('c1', { role: 'db-admin' })]
  return [a, b, c]
}

async function assertWithin(plane: MoneyPlane, limits: Readonly<Record<string, number>>): Promise<void> {
  for (const row of await plane.rows('SELECT scope, spent, reserved FROM budget_days')) {
    const name = String(row.scope) === '*' ? 'all' : (String(row.scope).split(':')[1] ?? '')
    expect(number(row, 'spent') + number(row, 'reserved')).toBeLessThanOrEqual(limits[name] ?? Number.MAX_SAFE_INTEGER)
    expect(number(row, 'reserved')).toBe(0)
  }
}
