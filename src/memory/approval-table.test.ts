import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { callOf, createMemoryStage, judgement, type MemoryStage, noon, runOf } from './fixture.ts'

let memoryStage: MemoryStage
let id = ''
const plan = judgement.plan
beforeEach(() => {
  memoryStage = createMemoryStage()
  const gate = { type: 'gate.open' as const, id: 'call-1', call: callOf('call-1'), judgement: { ...judgement, risk: 'medium' as const } }
  id = memoryStage.memory.approvals.create({ run: runOf(1), gate, expires: noon + 60_000 })
})
afterEach(() => memoryStage.remove())

const yes = () => memoryStage.memory.approvals.decide({ id, allow: true, by: 'user' })

test('an undecided or denied approval cannot be used', () => {
  const { approvals } = memoryStage.memory
  expect(approvals.consume({ id, plan })).toMatchObject({ ok: false, reason: expect.stringContaining('is open') })
  expect(approvals.decide({ id, allow: false, by: 'user', note: 'no' })).toEqual({ ok: true })
  expect(approvals.consume({ id, plan })).toMatchObject({ ok: false, reason: expect.stringContaining('is denied') })
  expect(approvals.get(id)).toMatchObject({ state: 'denied', decidedBy: 'user', note: 'no' })
})

test('a late decision, a second decision and one for an unknown question are refused', () => {
  const { approvals } = memoryStage.memory
  expect(approvals.decide({ id: 'run-9/x', allow: true, by: 'user' })).toMatchObject({
    ok: false,
    reason: expect.stringContaining('does not exist'),
  })
  expect(yes()).toEqual({ ok: true })
  expect(approvals.decide({ id, allow: false, by: 'other' })).toEqual({ ok: false, reason: `approval "${id}" was already allowed by user` })
  const late = approvals.create({
    run: runOf(2),
    gate: { type: 'gate.open', id: 'c', call: callOf('c'), judgement },
    expires: memoryStage.clock.now + 5,
  })
  memoryStage.clock.now += 100
  expect(approvals.decide({ id: late, allow: true, by: 'user' })).toMatchObject({ ok: false, reason: expect.stringContaining('expired') })
  expect(approvals.list({ state: 'open' })).toEqual([])
  expect(approvals.list()).toHaveLength(2)
})

test('an approval is for its plan alone, for its time alone, and for once', () => {
  const { approvals } = memoryStage.memory
  yes()
  expect(approvals.consume({ id, plan: 'plan-2' })).toMatchObject({ ok: false, reason: expect.stringContaining('another plan') })
  expect(approvals.consume({ id: 'none', plan })).toMatchObject({ ok: false })
  expect(approvals.consume({ id, plan })).toEqual({ ok: true })
  expect(approvals.consume({ id, plan })).toMatchObject({ ok: false, reason: expect.stringContaining('is used') })
})

test('an allowed approval expires too', () => {
  yes()
  memoryStage.clock.now += 120_000
  expect(memoryStage.memory.approvals.consume({ id, plan })).toMatchObject({ ok: false, reason: expect.stringContaining('expired') })
})

test('an open question shows what a person must know', () => {
  expect(memoryStage.memory.approvals.list({ state: 'open' })).toMatchObject([
    {
      id: 'run-1/call-1',
      tool: 'file_read',
      risk: 'medium',
      reason: 'inside the workspace',
      summary: 'file_read a.txt',
      plan,
      state: 'open',
      decidedBy: null,
    },
  ])
})

test('a standing rule is added once, found exactly, listed and revoked', () => {
  const { approvals } = memoryStage.memory
  expect(approvals.hasRule('shell', '/usr/bin/git status')).toBe(false)
  const rule = approvals.addRule({ tool: 'shell', scope: '/usr/bin/git status', by: 'user' })
  expect(approvals.addRule({ tool: 'shell', scope: '/usr/bin/git status', by: 'other' })).toEqual(rule)
  expect(approvals.hasRule('shell', '/usr/bin/git status')).toBe(true)
  expect(approvals.hasRule('shell', '/usr/bin/git')).toBe(false)
  expect(approvals.hasRule('http', '/usr/bin/git status')).toBe(false)
  expect(approvals.rules()).toEqual([rule])
  expect([approvals.revokeRule(rule.id), approvals.revokeRule(rule.id)]).toEqual([true, false])
  expect(approvals.rules()).toEqual([])
})

test('a standing rule that was revoked and put back allows nothing; one that is given again does', () => {
  const { memory, path } = memoryStage
  const { approvals } = memory
  const give = () => approvals.addRule({ tool: 'shell', scope: '/usr/bin/git', by: 'user' })
  const rule = give()
  using db = new Database(path)
  db.run('CREATE TABLE older AS SELECT * FROM always_rules')
  approvals.revokeRule(rule.id)
  db.run('INSERT INTO always_rules SELECT * FROM older')
  expect([approvals.hasRule('shell', '/usr/bin/git'), approvals.rules()]).toEqual([false, []])
  expect(approvals.rules({ altered: true })).toEqual([{ ...rule, altered: true }])
  give()
  expect([approvals.hasRule('shell', '/usr/bin/git'), approvals.rules().length]).toEqual([true, 1])
})

test('a question of a procedure lives for days; that of a tool never longer than ten minutes, whatever its row says', () => {
  const { approvals } = memoryStage.memory
  const lasting = (name: string, number: number) => {
    const gate = { type: 'gate.open' as const, id: 'c', call: { id: 'c', name, input: {} }, judgement }
    return approvals.create({ run: runOf(number), gate, expires: noon + 30 * 86_400_000 })
  }
  const [ofTool, ofProcedure] = [lasting('sop', 11), lasting('sop.approval', 12)]
  memoryStage.clock.now = noon + 86_400_000
  expect(approvals.list({ state: 'open' }).map((each) => each.id)).toEqual([ofProcedure])
  expect(approvals.decide({ id: ofTool, allow: true, by: 'user' })).toMatchObject({ ok: false })
  expect(approvals.decide({ id: ofProcedure, allow: true, by: 'user' })).toEqual({ ok: true })
})
