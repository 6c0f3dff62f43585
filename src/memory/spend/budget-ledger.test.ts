import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store } from '../store.ts'
import { type BudgetLedger, type BudgetLimit, createBudgetLedger } from './budget-ledger.ts'

const day = 86_400_000
const noon = Date.UTC(2026, 10, 23, 12)

let folder: string
let store: Store
let ledger: BudgetLedger
const clock = { now: noon }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-budget-'))
  clock.now = noon
  store = open()
  ledger = createBudgetLedger(store, () => clock.now)
})
afterEach(() => {
  store.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(): Store {
  const opened = openStore({ path: join(folder, 'memory.sqlite'), log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  return opened.store
}

const home: BudgetLimit = { scope: 'home', window: 'day', tokens: 1000 }
const talk: BudgetLimit = { scope: 'conversation:c', window: 'ever', micros: 500 }
let ids = 0

function reserve(tokens: number, { limits = [home], micros = 0, least = tokens, expires = clock.now + 600_000, id = `res_${++ids}` } = {}) {
  const reserved = store.write(() => ledger.reserve({ id, limits, most: { tokens, micros }, least: { tokens: least, micros }, expires }))
  return { id, ...reserved }
}
const settle = (id: string, tokens: number, micros = 0) => store.write(() => ledger.settle(id, { tokens, micros }))
const spent = (limit = home) => ledger.state(limit).spent.tokens
const held = (limit = home) => ledger.state(limit).reserved.tokens

test('what does not fit is not reserved, and what stands in the way is named', () => {
  reserve(700)
  expect(reserve(301)).toMatchObject({ ok: false, limit: home, unit: 'tokens', spent: { tokens: 0 }, reserved: { tokens: 700 } })
  expect(reserve(300).ok).toBe(true)
  expect([spent(), held()]).toEqual([0, 1000])
})

test('all scopes or none: the outer ones are not charged when an inner one has no room', () => {
  expect(reserve(10, { limits: [home, talk], micros: 501 })).toMatchObject({ ok: false, limit: talk, unit: 'micros' })
  expect([spent(), held()]).toEqual([0, 0])
  expect(reserve(10, { limits: [home, talk], micros: 500 }).ok).toBe(true)
  expect([held(), ledger.state(talk).reserved.micros]).toEqual([10, 500])
})

test('where there is not room for the most, what there is is reserved, but never less than the least', () => {
  reserve(800)
  expect(reserve(700, { least: 150 })).toMatchObject({ ok: true, amount: { tokens: 200 } })
  expect(reserve(700, { least: 1 }).ok).toBe(false)
})

test('what was used takes the place of what was reserved, also when it is more', () => {
  const [less, more] = [reserve(500), reserve(100)]
  settle(less.id, 20)
  settle(more.id, 300)
  expect([spent(), held()]).toEqual([320, 0])
})

test('settling twice counts once', () => {
  const { id } = reserve(500)
  expect([settle(id, 100), settle(id, 0), settle(id, 900)]).toEqual([true, false, false])
  expect(spent()).toBe(100)
})

test.each([
  ['unknown', 'unknown' as const],
  ['not counted', 'uncounted' as const],
  ['negative', { tokens: -5, micros: 0 }],
  ['no number', { tokens: Number.NaN, micros: 0 }],
  ['negative money', { tokens: 1, micros: -1 }],
])('use that is %s counts as all that was reserved', (_, used) => {
  const { id } = reserve(500)
  store.write(() => ledger.settle(id, used))
  expect([spent(), held()]).toEqual([500, 0])
})

test('use beyond all bounds closes the budget and breaks nothing', () => {
  for (const tokens of [1e300, Number.POSITIVE_INFINITY]) settle(reserve(10, { limits: [{ ...home, tokens: 1e15 }] }).id, tokens)
  expect(spent()).toBe(2e12)
  expect(reserve(1).ok).toBe(false)
})

test('what an ended process had reserved is spent, in full', () => {
  reserve(400)
  store.sql("UPDATE budget_reservations SET owner = '999999999@1-0'").run()
  expect([spent(), held()]).toEqual([400, 0])
  expect(reserve(601).ok).toBe(false)
})

test('after its time a reservation is spent in full, unless the call is settled late after all', () => {
  const { id } = reserve(400, { expires: clock.now + 1000 })
  clock.now += 2000
  expect([spent(), held()]).toEqual([400, 0])
  settle(id, 30)
  expect(spent()).toBe(30)
})

test('a new UTC day is a new budget; a call that began before midnight counts where it was reserved', () => {
  const { id } = reserve(1000)
  clock.now = Date.UTC(2026, 10, 24, 0, 0, 1)
  expect(reserve(1000).ok).toBe(true)
  settle(id, 900)
  expect([spent(), held()]).toEqual([0, 1000])
  clock.now -= 2000
  expect(spent()).toBe(900)
})

test('a conversation has its budget for ever', () => {
  reserve(0, { limits: [talk], micros: 400 })
  clock.now += 400 * day
  expect(reserve(0, { limits: [talk], micros: 101 }).ok).toBe(false)
})

test('a clock that is set back opens no day again, and that is told', () => {
  settle(reserve(1000).id, 1000)
  clock.now -= day
  expect(reserve(1).ok).toBe(false)
  expect(ledger.dayAhead()).toBe('2026-11-23')
  clock.now += 2 * day
  expect([reserve(1).ok, ledger.dayAhead()]).toEqual([true, undefined])
})

test('a clock that was years ahead for a moment closes the budget for today and tomorrow, not for years', () => {
  clock.now += 4000 * day
  settle(reserve(600).id, 600)
  const open = reserve(400)
  clock.now = noon
  expect(reserve(1).ok).toBe(false)
  clock.now += day
  expect(reserve(1).ok).toBe(false)
  settle(open.id, 0)
  expect(reserve(400).ok).toBe(true)
  clock.now += day
  expect(reserve(1000).ok).toBe(true)
})

test('two processes see one another', () => {
  const other = open()
  const theirs = createBudgetLedger(other, () => clock.now)
  reserve(900)
  const request = { id: 'theirs', limits: [home], most: { tokens: 101, micros: 0 }, least: { tokens: 101, micros: 0 }, expires: noon + 1 }
  expect(other.write(() => theirs.reserve(request)).ok).toBe(false)
  other.close()
})

test('old rows go: reservations that nobody can settle any more, and runs of last week', () => {
  reserve(10, { limits: [{ scope: 'run:old', window: 'ever', tokens: 100 }], expires: clock.now + 1000 })
  clock.now += 9 * day
  const later = createBudgetLedger(store, () => clock.now)
  store.write(() =>
    later.reserve({ id: 'new', limits: [home], most: { tokens: 1, micros: 0 }, least: { tokens: 1, micros: 0 }, expires: clock.now }),
  )
  const db = new Database(store.path)
  expect(db.query('SELECT id FROM budget_reservations').values()).toEqual([['new']])
  expect(db.query('SELECT scope FROM budget_charges').values()).toEqual([['home']])
  db.close()
})
