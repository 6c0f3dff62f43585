import { describe, expect, test } from 'bun:test'
import type { Judgement } from '../event.ts'
import { eventful, limits, live, yes } from './recorded.fixture.ts'
import { rejudge } from './rejudge.ts'

describe('what another policy would have done', () => {
  const judge = (verdict: Judgement['verdict']) => (): Judgement => ({
    verdict,
    risk: 'low',
    rule: 'new.rule',
    reason: 'new',
    plan: 'other',
    summary: 'x',
    writes: [],
  })

  test('every call old and new, and the first place where it would have gone another way', async () => {
    const { entries } = await live(eventful, yes)
    const { calls, divergence } = await rejudge({ entries, limits, judge: judge('deny') })
    expect(calls.map(({ id, before, after, changed }) => [id, before.verdict, after.verdict, after.rule, changed])).toEqual([
      ['a', 'allow', 'deny', 'new.rule', true],
      ['b', 'deny', 'deny', 'new.rule', false],
      ['c', 'ask', 'deny', 'new.rule', true],
      ['d', 'allow', 'deny', 'new.rule', true],
    ])
    expect(calls.map(({ event }) => event)).toEqual([2, 2, 2, entries.findLastIndex(({ type }) => type === 'act')])
    expect(divergence).toEqual({ before: 'act a', after: 'deny a' })
  })

  test('the same verdicts by other rules with other plans are no other way', async () => {
    const { entries } = await live(eventful, yes)
    const old = new Map<string, Judgement['verdict']>([
      ['b', 'deny'],
      ['c', 'ask'],
    ])
    const { calls, divergence } = await rejudge({ entries, limits, judge: ({ id }) => judge(old.get(id) ?? 'allow')() })
    expect(calls.some(({ changed }) => changed)).toBe(false)
    expect(divergence).toBeUndefined()
  })

  test('a question that would no longer be asked is one', async () => {
    const { entries } = await live(eventful, yes)
    const { divergence } = await rejudge({ entries, limits, judge: ({ id }) => judge(id === 'b' ? 'deny' : 'allow')() })
    expect(divergence).toEqual({ before: 'gate.open c', after: 'act c' })
  })

  test('the calls of an interrupted run that goes on are judged too', async () => {
    const proposals = [{ call: { id: 'a', name: 'tool', input: {} }, judgement: judge('allow')() }]
    const continues = { run: 'run_0', asked: 'go', proposals }
    const body = { type: 'run.start', prompt: '', mode: 'structured', at: 0, model: 'm', continues }
    const entries = [{ seq: 1, kind: 'external', type: 'run.start', body } as const]
    const { calls, divergence } = await rejudge({ entries, limits, judge: judge('deny') })
    expect(calls.map(({ id, after }) => [id, after.verdict])).toEqual([['a', 'deny']])
    expect(divergence).toEqual({ before: 'act a', after: 'deny a' })
  })
})
