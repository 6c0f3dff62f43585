/** Tests what the model calls of a home have used: by day, whoever deletes a run, whatever a crash left. */

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Usage } from '../../runtime/event.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { clearConversations } from '../conversations/delete-conversations.ts'
import { createMemoryStage, type MemoryStage, noon, runOf } from '../fixture.ts'
import { openMemory } from '../memory.ts'
import { migrations } from '../migrations.ts'
import { createBudgetLedger } from './budget-ledger.ts'
import type { Payer, SpendKey, SpendTable } from './spend.ts'
import { createSpendTable } from './spend.ts'

let stage: MemoryStage
let table: SpendTable
beforeEach(async () => {
  stage = createMemoryStage()
  table = createSpendTable(stage.memory.store, () => stage.clock.now++)
})
afterEach(() => stage.remove())

const hour = 3_600_000
const usage: Usage = { inputTokens: 100, outputTokens: 20, cachedInputTokens: 60, costMicros: 438 }
const start = { type: 'run.start', prompt: 'hi' }

type Call = { readonly at: number; readonly type?: string; readonly body?: object; readonly used?: Usage; readonly model?: string }

function run(number: number, calls: readonly Call[], own: Partial<RunIdentity> = {}, ended: number | undefined = noon): RunIdentity {
  const { journal } = stage.memory
  const identity = runOf(number, own)
  journal.append({ run: identity, kind: 'external', type: 'run.start', at: calls[0]?.at ?? noon, body: start })
  for (const {
    at,
    type = 'model.done',
    used = usage,
    model = 'm',
    body = { parts: [], proposals: [], usage: used, model, provider: 'p' },
  } of calls)
    journal.append({ run: identity, kind: 'external', type, at, body: { type, ...body } })
  if (ended !== undefined) journal.end(identity.runId, { at: ended, code: 'answered', message: '', digest: null })
  return identity
}

const by = (key: SpendKey, fromDay = '2026-01-01') => table.rows({ by: key, limit: 100, fromDay }).rows
const total = (fromDay = '2026-01-01', token?: string) => totalOf(table, fromDay, token)
const totalOf = (from: SpendTable, fromDay: string, token?: string) =>
  from.rows({ by: 'day', limit: 1, fromDay, ...(token ? { token } : {}) }).total
const sqlite = () => new Database(stage.path)

test('a home without calls has spent nothing', () => {
  expect(by('day')).toEqual([])
  expect(total()).toMatchObject({ calls: 0, inputTokens: 0, micros: 0, lostCalls: 0 })
})

test('calls add up to the token and the millionth, by everything that a run says', () => {
  run(1, [{ at: noon }, { at: noon, used: { inputTokens: 7, outputTokens: 3 }, model: 'n' }], { channel: 'terminal' })
  run(2, [{ at: noon }], { conversationId: 'other', channel: 'http', token: 'tok' })
  expect(total()).toEqual({
    calls: 3,
    inputTokens: 207,
    outputTokens: 43,
    cachedTokens: 120,
    unsettledTokens: 0,
    micros: 876,
    unpricedCalls: 1,
    estimatedCalls: 0,
    unsettledCalls: 0,
    lostCalls: 0,
  })
  const keys = (key: SpendKey) => by(key).map((row) => [row.key, row.calls, row.micros])
  expect(keys('model')).toEqual([
    ['p/m', 2, 876],
    ['p/n', 1, 0],
  ])
  expect(keys('channel')).toEqual([
    ['terminal', 2, 438],
    ['http', 1, 438],
  ])
  expect(keys('conversation')).toEqual([
    ['conversation-1', 2, 438],
    ['other', 1, 438],
  ])
  expect(keys('token')).toEqual([
    ['', 2, 438],
    ['tok', 1, 438],
  ])
  expect(keys('run').map(([key]) => key)).toEqual(['run-1', 'run-2'])
  expect(total('2026-01-01', 'tok')).toMatchObject({ calls: 1, micros: 438 })
})

describe('a day', () => {
  const midnight = Date.UTC(2026, 4, 13)

  test('is that of each call, not of its run: a run over midnight has two', () => {
    run(1, [{ at: midnight - 1 }, { at: midnight }, { at: midnight + hour }], {}, midnight + hour)
    expect(by('day').map(({ key, calls }) => [key, calls])).toEqual([
      ['2026-05-12', 1],
      ['2026-05-13', 2],
    ])
    expect(by('day', '2026-05-13').map(({ calls }) => calls)).toEqual([2])
    expect(total('2026-05-14').calls).toBe(0)
  })

  test('counts although the clock was set back during the run', () => {
    run(1, [{ at: midnight + hour }, { at: midnight - hour }], {}, midnight - hour)
    expect(by('day').map(({ key, calls }) => [key, calls])).toEqual([
      ['2026-05-12', 1],
      ['2026-05-13', 1],
    ])
    expect(total('2026-05-13').calls).toBe(1)
  })
})

test('a run under way counts what it has used so far', () => {
  run(1, [{ at: noon }], {}, undefined)
  expect(by('run')).toMatchObject([{ key: 'run-1', calls: 1, micros: 438 }])
})

describe('a run that is deleted', () => {
  const gone = (statement: string) => {
    using db = sqlite()
    db.run(statement)
  }

  test.each([
    ['its journal first', ['DELETE FROM journal', 'DELETE FROM runs']],
    ['its row first', ['DELETE FROM runs', 'DELETE FROM journal']],
  ])('by whomever, %s, leaves what it used', (_, statements) => {
    run(1, [{ at: noon }, { at: noon }], { channel: 'http', token: 'tok' })
    run(2, [{ at: noon }], { channel: 'http', token: 'tok' })
    const before = total()
    for (const statement of statements) gone(statement)
    expect(total()).toEqual(before)
    expect(by('channel')).toMatchObject([{ key: 'http', calls: 3 }])
    expect(by('token')).toMatchObject([{ key: 'tok', calls: 3 }])
    expect(by('run')).toMatchObject([{ key: '', calls: 3 }])
    expect(by('conversation')).toMatchObject([{ key: '', calls: 3 }])
  })

  test('by "memory clear", also one that a dead process left open', () => {
    run(1, [{ at: noon }])
    run(2, [{ at: noon }], {}, undefined)
    gone("UPDATE runs SET owner = '999999999@1-0'")
    expect(clearConversations(stage.memory, { yes: true }).ok).toBe(true)
    expect(total()).toMatchObject({ calls: 2, inputTokens: 200, micros: 876 })
  })

  test('whatever somebody wrote into its row, can be deleted, and the sums can be read', () => {
    run(1, [{ at: noon }])
    run(2, [{ at: noon }])
    for (const text of ['no json', '{}', '[]', '[1]', '[[1,2]]', 'null', '7']) {
      gone(`UPDATE runs SET spent = '${text}', agent = 'x' WHERE run_id = 'run-1'`)
      expect(total().calls).toBe(1)
    }
    gone('DELETE FROM runs')
    expect(total().calls).toBe(1)
  })
})

describe('a call without an answer', () => {
  const failed = (body: object) => ({ at: noon, type: 'model.fail', body })

  test('that broke off is one of which nothing is known; one that was refused costs nothing', () => {
    run(1, [failed({ code: 'timeout', message: '' }), failed({ code: 'aborted', message: '' })])
    run(2, [failed({ code: 'auth', message: '' }), failed({ code: 'network', message: '', unbilled: true })])
    expect(total()).toMatchObject({ calls: 0, lostCalls: 2, inputTokens: 0 })
  })

  test('whose process died while the model was asked is one of which nothing is known', () => {
    run(1, [{ at: noon, type: 'interrupted', body: { message: '', thinking: true } }])
    run(2, [{ at: noon, type: 'interrupted', body: { message: '' } }])
    expect(total()).toMatchObject({ calls: 0, lostCalls: 1 })
  })
})

describe('a reservation', () => {
  const payer: Payer = {
    agent: 'a',
    conversationId: 'c',
    channel: 'http',
    token: 'tok',
    runId: 'run-1',
    provider: 'p',
    model: 'm',
    priced: true,
  }
  const home = { scope: 'home', window: 'day', tokens: 10_000 } as const
  const reserve = async (expires = noon + hour, own: Partial<Payer> = {}) => {
    const ledger = createBudgetLedger(stage.memory.store, () => stage.clock.now++)
    const amount = { tokens: 700, micros: 900 }
    stage.memory.transaction(() =>
      ledger.reserve({ id: 'r', limits: [home], most: amount, least: amount, expires, payer: { ...payer, ...own } }),
    )
    return ledger
  }
  const dead = () => {
    using db = sqlite()
    db.run("UPDATE budget_reservations SET owner = '999999999@1-0'")
  }

  test('of a living process is reserved, not spent', async () => {
    await reserve()
    expect(table.held()).toEqual({ tokens: 700, micros: 900 })
    expect(total()).toMatchObject({ calls: 0, unsettledTokens: 0 })
  })

  test('of a dead process is spent in full, and once: its run does not count the call again', async () => {
    await reserve()
    dead()
    run(1, [{ at: noon, type: 'interrupted', body: { message: '', thinking: true } }])
    expect(table.held()).toEqual({ tokens: 0, micros: 0 })
    expect(total()).toMatchObject({ calls: 1, unsettledCalls: 1, unsettledTokens: 700, micros: 900, lostCalls: 0 })
    expect(by('token')).toMatchObject([{ key: 'tok', unsettledTokens: 700 }])
    expect(by('run')).toMatchObject([{ key: 'run-1', unsettledTokens: 700 }])
  })

  test('that is settled as unknown is spent in full, and a settled one is what it used', async () => {
    const ledger = await reserve()
    stage.memory.transaction(() => ledger.settle('r', 'unknown'))
    expect(total()).toMatchObject({ unsettledCalls: 1, unsettledTokens: 700, micros: 900 })
    const other = await reserve()
    stage.memory.transaction(() => other.settle('r', { tokens: 10, micros: 5 }))
    expect(total()).toMatchObject({ unsettledCalls: 1, unsettledTokens: 700, micros: 900 })
  })

  test('without a known price leaves the money unknown', async () => {
    await reserve(noon + hour, { priced: false })
    dead()
    expect(total()).toMatchObject({ unsettledCalls: 1, unpricedCalls: 1 })
  })

  test('that nobody settled for a day is kept when it is swept', async () => {
    await reserve(noon + 1)
    const later = openMemory({ path: stage.path, log: () => {}, now: () => noon + 48 * hour })
    if (!later.ok) throw new Error(later.failure.message)
    const ledger = createBudgetLedger(later.memory.store, () => noon + 48 * hour)
    const none = { tokens: 0, micros: 0 }
    later.memory.transaction(() => ledger.reserve({ id: 's', limits: [home], most: none, least: none, expires: noon + 49 * hour }))
    expect(
      totalOf(
        createSpendTable(later.memory.store, () => noon + 48 * hour),
        '2026-01-01',
      ),
    ).toMatchObject({ unsettledTokens: 700, micros: 900 })
    later.memory.close()
  })
})

test('a summary counts in its conversation, and a failed one is a call of which nothing is known', () => {
  const payer: Payer = { agent: 'a', conversationId: 'c', channel: 'terminal', provider: 'p', model: 'm', priced: true }
  table.addSummary(payer, '2026-05-12', usage)
  table.addSummary(payer, '2026-05-12', usage)
  table.addSummary(payer, '2026-05-12', 'unknown')
  expect(by('conversation')).toMatchObject([{ key: 'c', calls: 2, inputTokens: 200, micros: 876, lostCalls: 1 }])
})

test('a home of an earlier version has its past in the sums', async () => {
  const step = migrations.findIndex((text) => text.includes('CREATE TABLE spend('))
  run(1, [{ at: noon }, { at: noon }])
  stage.memory.close()
  {
    using db = sqlite()
    db.run('DROP TRIGGER runs_leave_spend; DROP TABLE spend; ALTER TABLE runs DROP COLUMN token; ALTER TABLE runs DROP COLUMN spent')
    db.run(
      `ALTER TABLE budget_reservations DROP COLUMN payer; INSERT INTO journal(run_id, kind, type, at, body) VALUES ('run-1', 'external', 'model.done', 1, '{')`,
    )
    for (const text of migrations.slice(step + 1).toReversed()) {
      for (const [, name = ''] of text.matchAll(/CREATE INDEX (\w+)/g)) db.run(`DROP INDEX ${name}`)
      for (const [, name = ''] of text.matchAll(/CREATE TABLE (\w+)/g)) db.run(`DROP TABLE ${name}`)
      for (const [, name, column] of text.matchAll(/ALTER TABLE (\w+) ADD COLUMN (\w+)/g))
        db.run(`ALTER TABLE ${name} DROP COLUMN ${column}`)
    }
    db.run(`PRAGMA user_version = ${step}`)
  }
  const again = openMemory({ path: stage.path, log: () => {}, now: () => noon })
  if (!again.ok) throw new Error(again.failure.message)
  expect(
    totalOf(
      createSpendTable(again.memory.store, () => noon),
      '2026-01-01',
    ),
  ).toMatchObject({ calls: 2, inputTokens: 200, micros: 876 })
  again.memory.close()
})
