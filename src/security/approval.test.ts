import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Approval, type ApprovalResult, consume, decide, openApproval } from './approval.ts'

const now = 1_800_000_000_000

function got(result: ApprovalResult): Approval {
  if (!result.ok) throw new Error(result.reason)
  return result.approval
}

function codeOf(result: ApprovalResult): string {
  return result.ok ? 'ok' : result.code
}

const opened = () => got(openApproval({ id: 'a1', plan: 'p', now, ttlMs: 60_000 }))
const yes = (approval = opened()) => got(decide(approval, { plan: 'p', allow: true, by: 'ann', now: now + 1 }))

describe('consuming', () => {
  test('an approval that nobody opened is refused', () => expect(codeOf(consume(undefined, { plan: 'p', now }))).toBe('unknown'))
  test('one without a decision is refused', () => expect(codeOf(consume(opened(), { plan: 'p', now }))).toBe('undecided'))
  test('a denied one is refused', () => {
    expect(codeOf(consume(got(decide(opened(), { plan: 'p', allow: false, by: 'ann', now })), { plan: 'p', now }))).toBe('denied')
  })
  test('another plan is refused', () => expect(codeOf(consume(yes(), { plan: 'q', now: now + 2 }))).toBe('other_plan'))
  test('a late one is refused, to the millisecond', () => {
    expect(codeOf(consume(yes(), { plan: 'p', now: now + 60_000 }))).toBe('expired')
    expect(codeOf(consume(yes(), { plan: 'p', now: now + 59_999 }))).toBe('ok')
  })
  test('a clock set back does not lengthen its life', () => expect(codeOf(consume(yes(), { plan: 'p', now: now - 1 }))).toBe('expired'))
  test('a second use is refused', () => {
    const used = got(consume(yes(), { plan: 'p', now: now + 2 }))
    expect(codeOf(consume(used, { plan: 'p', now: now + 3 }))).toBe('used')
    expect(codeOf(decide(used, { plan: 'p', allow: true, by: 'eve', now: now + 3 }))).toBe('used')
  })
  test('a stored one whose life, plan or name was edited is refused', () => {
    for (const edit of [{ expiresAt: now + 1e9 }, { plan: 'q' }, { id: 'a2' }, { openedAt: 0 }])
      expect(codeOf(consume({ ...yes(), ...edit }, { plan: edit.plan ?? 'p', now: now + 2 }))).toBe('altered')
  })
})

describe('deciding', () => {
  test('nobody decides what was not opened', () =>
    expect(codeOf(decide(undefined, { plan: 'p', allow: true, by: 'ann', now }))).toBe('unknown'))
  test('a no cannot be turned into a yes, nor a yes into a no', () => {
    const no = got(decide(opened(), { plan: 'p', allow: false, by: 'ann', now }))
    expect(codeOf(decide(no, { plan: 'p', allow: true, by: 'eve', now }))).toBe('already_decided')
    expect(codeOf(decide(yes(), { plan: 'p', allow: false, by: 'eve', now: now + 2 }))).toBe('already_decided')
  })
  test('a late decision and one for another plan are refused', () => {
    expect(codeOf(decide(opened(), { plan: 'p', allow: true, by: 'ann', now: now + 60_000 }))).toBe('expired')
    expect(codeOf(decide(opened(), { plan: 'q', allow: true, by: 'ann', now }))).toBe('other_plan')
  })
})

test('who decided and their note stay with the approval', () => {
  expect(got(decide(opened(), { plan: 'p', allow: true, by: 'ann', now, note: 'once' }))).toMatchObject({
    state: 'allowed',
    by: 'ann',
    note: 'once',
  })
  expect(yes()).not.toHaveProperty('note')
})

test('a life is between one millisecond and ten minutes', () => {
  for (const ttlMs of [0, -1, 600_001, Number.NaN, Number.POSITIVE_INFINITY, 1.5])
    expect(codeOf(openApproval({ id: 'a', plan: 'p', now, ttlMs }))).toBe('bad_ttl')
  expect(codeOf(openApproval({ id: 'a', plan: 'p', now: Number.NaN, ttlMs: 1 }))).toBe('bad_ttl')
  expect(codeOf(openApproval({ id: 'a', plan: 'p', now, ttlMs: 600_000 }))).toBe('ok')
})

test('whatever is done to one approval, it is consumed at most once, for its plan, in time, after a yes and no no', () => {
  const step = fc.record({
    kind: fc.constantFrom('allow', 'deny', 'consume'),
    plan: fc.constantFrom('p', 'p', 'q'),
    at: fc.integer({ min: -1, max: 61_000 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
      let approval = opened()
      const done: string[] = []
      for (const { kind, plan, at } of steps) {
        const when = { plan, now: now + at }
        const result = kind === 'consume' ? consume(approval, when) : decide(approval, { ...when, allow: kind === 'allow', by: 'x' })
        if (!result.ok) continue
        expect(plan === 'p' && at >= 0 && at < 60_000).toBe(true)
        done.push(kind)
        approval = result.approval
      }
      expect([[], ['allow'], ['deny'], ['allow', 'consume']]).toContainEqual(done)
    }),
    { numRuns: 2000 },
  )
})
