import { expect, test } from 'bun:test'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, moneyPlane, refusalOf, seedCaller } from '../support/money-plane.ts'
import { ledgerSum, reserve, settle, statusOf, usedBy } from '../support/spend-tokens.ts'
import { agentCaller, anna } from '../support/task-plane.ts'

forEachEngine('reports of tokens', (open) => {
  test('a report of more tokens than a run can spend is refused before anything is counted, and the operator hears of it once', async () => {
    const plane = await moneyPlane(await open(), { mostTokensOfReport: 1_000_000 })
    await plane.addAgent('a1')
    await plane.budget.set(anna, { daily_tokens: 500_000 })
    const run = await plane.startRun()
    const { reservation_id } = await reserve(plane, run, 100)
    const result = (tokens_used: number) => ({ status: 'success', tokens_used })
    const completes = { event_type: 'task_completed', task_id: 'TASK-001', agent_id: 'a1' }
    const errs = { event_type: 'error', agent_id: 'a1', error_message: 'x' }
    for (const caller of [run.caller, agentCaller('a1'), seedCaller, anna]) {
      expect(await codeOf(plane.activity(caller, { ...completes, result: result(1_000_001) }))).toBe('bad_request')
      expect(await codeOf(plane.activity(caller, { ...errs, tokens_used: 1e9 }))).toBe('bad_request')
    }
    expect(await codeOf(plane.tasks.release(run.caller, 'TASK-001', { outcome: 'now', tokens_used: 1e9 }))).toBe('bad_request')
    const { message, details } = await refusalOf(settle(plane, run, reservation_id, 1_000_001))
    expect(message).toContain('no run can report more than 1000000 tokens (CONTROLPLANE_REPORT_TOKENS), and this report says 1000001')
    expect(details).toEqual({ most: 1_000_000, reported: 1_000_001 })
    expect([await usedBy(plane, '*'), await ledgerSum(plane), await statusOf(plane, 'TASK-001')]).toEqual([[0, 100], 0, 'running'])
    const told = async () => (await plane.events.list(anna, { type: 'budget.report_refused', limit: 50 })).events
    expect(await told()).toMatchObject([
      { agent_id: 'a1', task_id: 'TASK-001', run_id: 'RUN-001', data: { reported: 1_000_001, most: 1_000_000 } },
    ])
    plane.clock.at += 600_001
    expect(await codeOf(plane.activity(agentCaller('a1'), { ...errs, tokens_used: 1e9 }))).toBe('bad_request')
    expect(await told()).toHaveLength(2)
    // What is far above a limit and can be true counts: the ledger is never less than what was spent.
    const next = await plane.startRun('a1').catch(() => undefined)
    expect(next).toBeDefined()
    await plane.activity(next?.caller ?? anna, { ...completes, task_id: next?.claim.task.task_id, result: result(1_000_000) })
    expect(await ledgerSum(plane)).toBeGreaterThanOrEqual(1_000_000)
    expect(await codeOf(reserve(plane, next ?? run, 1))).not.toBe('done')
  })

  test.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty'])(
    'a role named %s has the limit that it was given, and no other',
    async (role) => {
      const plane = await moneyPlane(await open())
      await plane.addAgent('a1', { role })
      await plane.budget.set(anna, { daily_tokens: 1_000 })
      const run = await plane.startRun('a1', { role })
      const { budget_remaining, reservation_id } = await reserve(plane, run, 100)
      expect(budget_remaining).toBe(900)
      await settle(plane, run, reservation_id, 100)
      await plane.budget.set(anna, { allocation: { [role]: 150 } })
      expect(await codeOf(reserve(plane, run, 60))).toBe('budget_exceeded')
      expect((await plane.budget.get(anna)).roles[role]).toEqual({ limit: 150, spent: 100, reserved: 0, remaining: 50 })
    },
  )
})
