import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { ChangeReview } from '../runtime/changes.ts'
import type { ExternalEvent, InternalEvent, ToolOutcome } from '../runtime/event.ts'
import { applied, notKept } from '../runtime/outcome.ts'
import { acting, callOf, createRecordStage, finish, judgement, noon, recordFailure, runOf, started } from './fixture.ts'
import { attempts as attemptsIn } from './journal/attempts.ts'
import type { Fate } from './recovery/pending-changes.ts'

let stage: ReturnType<typeof createRecordStage>
beforeEach(() => {
  stage = createRecordStage()
})
afterEach(() => stage.memoryStage.remove())

const recorder: (typeof stage)['recorder'] = (own) => stage.recorder(own)
const run = runOf(1)
const call = callOf('a')
const digest = 'd1'.repeat(32)
const review: ChangeReview = { digest, verdict: 'ask', rule: 'changes.ask', reason: 'why', summary: '1 new file: a', count: 1 }
const outcome: ToolOutcome = { status: 'allowed', output: 'made it', metadata: { sandbox: 'bubblewrap' } }
const changed: ExternalEvent = { type: 'tool.changed', id: 'a', call, judgement, outcome, review }
const apply = (approval?: string): Extract<InternalEvent, { type: 'apply' }> => ({
  type: 'apply',
  id: 'a',
  call,
  judgement,
  review,
  ...(approval ? { approval } : {}),
})
const drop = (by: string): Extract<InternalEvent, { type: 'drop' }> => ({
  type: 'drop',
  id: 'a',
  call,
  judgement,
  review,
  outcome,
  by,
  reason: 'no',
})
const asked = { type: 'gate.open', id: 'a', call, judgement: { ...judgement, plan: digest }, changes: review } as const
const answer = (allow: boolean, plan = digest): ExternalEvent => ({ type: 'approval.decision', id: 'a', allow, by: 'ann', plan })
const gateId = 'changes:run-1/a'

/** A call that ran and changed something, about which the gate asks. */
function asking(own: Parameters<typeof recorder>[0] = {}) {
  const steps = recorder(own)
  steps.external(run, started('hi'))
  steps.intent(run, acting(call))
  steps.external(run, changed)
  steps.gate(run, asked, noon + 60_000)
  return steps
}

const { approvals, attempts } = {
  approvals: () => stage.memoryStage.memory.approvals,
  attempts: () => [...attemptsIn(stage.memoryStage.memory.store)],
}

test('changes that were not approved, or whose approval is of another plan, may not be applied', () => {
  const { applying, external } = asking()
  expect(applying(run, apply('eve'))).toContain('is open')
  external(run, answer(true, 'another'))
  expect(approvals().get(gateId)?.state).toBe('open')
})

test('nothing is applied, dropped or reported of a call that never began', () => {
  const { applying, dropped } = recorder()
  expect(recordFailure(() => applying(run, apply())).code).toBe('no_intent')
  expect(recordFailure(() => dropped(run, drop('ann'))).code).toBe('no_intent')
})

test('a yes to the changes is used once, and the receipt names it and the digest', () => {
  const { applying, external } = asking()
  external(run, answer(true))
  expect(applying(run, apply('ann'))).toBeUndefined()
  expect(approvals().get(gateId)?.state).toBe('used')
  external(run, { type: 'tool.done', id: 'a', outcome: applied(outcome, review) })
  expect(stage.counted.drafts).toMatchObject([{ status: 'allowed', changes: digest, approval: 'ann', sandbox: 'bubblewrap' }])
  expect(attempts()).toMatchObject([{ status: 'allowed', changes: digest, receiptId: 'receipt-1' }])
  expect(attempts()[0]).not.toHaveProperty('contradiction')
})

test('dropped changes leave one receipt: denied, with what the command printed told to the model', () => {
  const { dropped } = asking()
  expect(dropped(run, drop('approval.ann'))).toBe('receipt-1')
  expect(stage.counted.drafts).toMatchObject([{ status: 'denied', changes: 'dropped', error: 'approval.ann: no', sandbox: 'bubblewrap' }])
  expect(attempts()).toMatchObject([{ status: 'denied', changes: 'dropped', pending: false }])
  expect(stage.memoryStage.memory.journal.openIntent('run-1', 'a')).toBeUndefined()
  const [, turn] = stage.memoryStage.memory.conversations.show('conversation-1')
  expect(turn?.content).toContain('its changes were not applied: they were dropped by approval.ann')
  expect(turn?.content).toEndWith('made it')
  expect(approvals().get(gateId)?.state).toBe('denied')
})

test('changes that nobody was asked about and that could not be kept are dropped: nothing says that they wait', () => {
  asking().dropped(run, { ...drop('approval.nobody'), outcome: notKept(outcome) })
  expect(stage.counted.drafts).toMatchObject([{ status: 'denied', changes: 'dropped', error: 'approval.nobody: no' }])
  const [, turn] = stage.memoryStage.memory.conversations.show('conversation-1')
  expect(turn?.content).toContain('they were dropped by approval.nobody: no; they could not be kept for a later yes')
  expect(approvals().get(gateId)?.state).toBe('denied')
})

test('the question about changes says so, and a call may have been asked about before it ran', () => {
  const { gate, external } = recorder()
  gate(run, { type: 'gate.open', id: 'a', call, judgement }, noon + 60_000)
  gate(run, asked, noon + 60_000)
  expect(
    approvals()
      .list()
      .map(({ id, changes, plan }) => [id, changes, plan])
      .sort(),
  ).toEqual([
    [gateId, 1, digest],
    ['run-1/a', 0, judgement.plan],
  ])
  external(run, answer(true))
  expect([approvals().get(gateId)?.state, approvals().get('run-1/a')?.state]).toEqual(['allowed', 'open'])
})

describe('changes that wait for a yes after their run', () => {
  const waiting = (own: Parameters<typeof recorder>[0] = {}) => {
    const steps = asking(own)
    steps.dropped(run, drop('approval.nobody'))
    steps.finished(run, finish, 'abc')
    return steps
  }
  const works = async () => ({ ok: true }) as const

  test('are not applied without a question, twice, when their run still waits, or for a call that has not run', async () => {
    const tried: string[] = []
    const applying = async ({ id }: { id: string }) => {
      tried.push(id)
      return { ok: true } as const
    }
    const { applyPending, gate, dropped } = asking()
    expect(await applyPending('changes:run-9/a', 'me', applying)).toMatchObject({
      ok: false,
      message: expect.stringContaining('does not exist'),
    })
    expect(await applyPending(gateId, 'me', applying)).toMatchObject({ ok: false, message: expect.stringContaining('has not dropped') })
    gate(run, { type: 'gate.open', id: 'b', call: callOf('b'), judgement }, noon + 60_000)
    expect(await applyPending('run-1/b', 'me', applying)).toMatchObject({ ok: false, message: expect.stringContaining('has not run') })
    dropped(run, drop('approval.nobody'))
    expect(tried).toEqual([])
    expect(await applyPending(gateId, 'me', applying)).toMatchObject({ ok: true })
    expect(await applyPending(gateId, 'me', applying)).toMatchObject({ ok: false, message: expect.stringContaining('was already used') })
    expect(tried).toEqual([gateId])
  })

  test('stay open until they expire, are applied by a later yes, and both leave a receipt', async () => {
    const { applyPending } = waiting()
    expect(stage.counted.drafts).toMatchObject([{ status: 'denied', changes: 'pending' }])
    expect(approvals().list({ state: 'open' })).toMatchObject([{ id: gateId, changes: 1 }])
    expect(await applyPending(gateId, 'me', works)).toEqual({ ok: true, receipt: 'receipt-2' })
    expect(stage.counted.drafts[1]).toMatchObject({ tool: 'changes.apply', status: 'allowed', approval: 'operator', changes: digest })
    expect(stage.memoryStage.memory.actions.wordsOf('receipt-2')).toContain('"by":"me"')
  })

  test('are not applied once they have expired', async () => {
    const { applyPending } = waiting()
    stage.memoryStage.clock.now = noon + 120_000
    expect(await applyPending(gateId, 'me', works)).toMatchObject({ ok: false, message: expect.stringContaining('expired') })
  })

  test.each([
    ['dropped', 'denied'],
    ['pending', 'open'],
    [undefined, 'denied'],
  ] as const)('that cannot be applied and are %p leave a receipt that says so, and the question is %s', async (changes, state) => {
    const { applyPending } = waiting()
    const failed = { ok: false, message: 'a was changed meanwhile', ...(changes ? { changes } : {}) } as const
    expect(await applyPending(gateId, 'me', async () => failed)).toEqual({ ...failed, receipt: 'receipt-2' })
    expect(stage.counted.drafts[1]).toMatchObject({ status: 'failed', error: failed.message })
    expect(stage.counted.drafts[1]?.changes).toBe(changes)
    expect(approvals().get(gateId)?.state).toBe(state)
    expect(await applyPending(gateId, 'me', works)).toMatchObject({ ok: state === 'open' })
  })

  test.each<[Fate | undefined, object[], string]>([
    ['applied', [{ status: 'allowed', changes: digest }], 'used'],
    ['dropped', [{ status: 'failed', changes: 'dropped' }], 'denied'],
    ['pending', [], 'open'],
    [undefined, [{ status: 'failed', error: 'interrupted: outcome unknown' }], 'denied'],
  ])('when the process dies meanwhile and they are %p, the next start says so, once', async (fate, receipts, state) => {
    const { applyPending, recover } = waiting()
    void applyPending(gateId, 'me', () => new Promise(() => {}))
    recover(() => fate)
    expect(stage.counted.drafts).toHaveLength(1)
    orphan('applying')
    recover(() => fate)
    recover(() => fate)
    expect(stage.counted.drafts.slice(1)).toMatchObject(receipts)
    expect(approvals().get(gateId)?.state).toBe(state as 'used')
  })
})

/** Assigns the runs so far, or the changes that are being applied, to a process that no longer exists. */
function orphan(table: 'runs' | 'applying'): void {
  const db = new Database(stage.memoryStage.path)
  db.run(`UPDATE ${table} SET owner = ?`, [`${process.pid}@1-deadbeef`])
  db.close()
}

describe('after a crash', () => {
  test('a run whose changes are undecided is left alone until somebody says what became of them', () => {
    const { recover } = asking()
    orphan('runs')
    expect(recover()).toMatchObject({ interrupted: [], undecided: ['run-1'] })
    expect(stage.counted.drafts).toEqual([])
    expect(recover(() => 'dropped')).toMatchObject({ interrupted: [{ runId: 'run-1' }], undecided: [] })
  })

  const bodies = (type: string) =>
    stage.memoryStage.memory.journal
      .events('run-1')
      .filter((entry) => entry.type === type)
      .map(({ body }) => body)

  test.each<[Fate | undefined, object]>([
    [undefined, { error: 'interrupted: outcome unknown' }],
    ['dropped', { error: 'interrupted: outcome unknown' }],
  ])('a call that began and had not ended has an unknown outcome, also when its changes are %p', (fate, receipt) => {
    const { external, intent, recover } = recorder()
    external(run, started('hi'))
    intent(run, acting(call))
    orphan('runs')
    recover(() => fate)
    expect(stage.counted.drafts).toMatchObject([{ status: 'failed', ...receipt }])
    expect(attempts()[0]).not.toHaveProperty('contradiction')
  })

  test.each<[Fate | undefined, string, string]>([
    [undefined, 'dropped', 'denied'],
    ['dropped', 'dropped', 'denied'],
    ['pending', 'pending', 'open'],
  ])('changes that were undecided and are %p', (fate, changes, state) => {
    const { recover } = asking()
    orphan('runs')
    expect(recover(() => fate).interrupted).toEqual([{ runId: 'run-1', callId: 'a', tool: 'file_read', receipt: 'receipt-1' }])
    expect(stage.counted.drafts).toMatchObject([
      { status: 'denied', changes, error: 'interrupted: the process ended before the changes were decided' },
    ])
    expect(attempts()).toMatchObject([{ status: 'denied', changes, receiptId: 'receipt-1', unfinished: false }])
    expect(attempts()[0]).not.toHaveProperty('contradiction')
    expect(approvals().get(gateId)?.state).toBe(state as 'open')
    expect(bodies('drop')).toMatchObject([{ result: { status: 'denied' } }])
    expect(recover(() => fate).interrupted).toEqual([])
  })

  test.each<[Fate | undefined, object]>([
    ['applied', { status: 'allowed', changes: digest }],
    ['dropped', { status: 'failed', changes: 'dropped' }],
    [undefined, { status: 'failed', error: 'interrupted: outcome unknown' }],
  ])('changes that were being applied and are %p', (fate, receipt) => {
    const { applying, external, recover } = asking()
    external(run, answer(true))
    applying(run, apply('ann'))
    orphan('runs')
    recover(() => fate)
    expect(stage.counted.drafts).toMatchObject([{ ...receipt, approval: 'ann' }])
    expect(bodies('tool.done')).toHaveLength(1)
    expect(attempts()[0]).not.toHaveProperty('contradiction')
  })
})

describe('a journal that contradicts itself', () => {
  const complete = () => {
    const { applying, external } = asking()
    external(run, answer(true))
    applying(run, apply('ann'))
    external(run, { type: 'tool.done', id: 'a', outcome: applied(outcome, review) })
  }
  const alter = (type: string, sql: string) => {
    const db = new Database(stage.memoryStage.path)
    db.run(`UPDATE journal SET body = ${sql} WHERE type = ?`, [type])
    db.close()
  }

  test.each([
    ['tool.changed', `replace(body, '${digest}', '${'d2'.repeat(32)}')`, 'it applied other changes than it made'],
    ['apply', `replace(body, '${digest}', '${'d2'.repeat(32)}')`, 'it applied other changes than it made'],
    ['tool.done', `replace(body, '${digest}', '${'d2'.repeat(32)}')`, 'its result names changes that were not applied'],
    ['apply', `'{}'`, 'its result names changes that were not applied'],
  ])('%s set to %s', (type, sql, told) => {
    complete()
    alter(type, sql)
    expect(attempts()).toMatchObject([{ contradiction: told }])
  })

  test('a drop of other changes, and a result in the place of a drop', () => {
    asking().dropped(run, drop('ann'))
    alter('drop', `replace(body, '${digest}', '${'d2'.repeat(32)}')`)
    expect(attempts()).toMatchObject([{ contradiction: 'it dropped other changes than it made' }])
    alter('drop', `json_object('type', 'tool.done', 'id', 'a', 'outcome', json_object('status', 'allowed', 'output', ''))`)
    const db = new Database(stage.memoryStage.path)
    db.run(`UPDATE journal SET type = 'tool.done' WHERE type = 'drop'`)
    db.close()
    expect(attempts()).toMatchObject([{ contradiction: 'it changed something, which was neither applied nor dropped' }])
  })
})
