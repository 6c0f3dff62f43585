import { describe, expect, test } from 'bun:test'
import type { Risk } from '../runtime/event.ts'
import { permit, type Rated } from './autonomy.ts'
import { highest, pathRisk } from './risk.ts'

const risks: readonly Risk[] = ['low', 'medium', 'high']

function rated(risk: Risk, more: Partial<Rated> = {}): Rated {
  return { rating: { risk, reason: 'does a thing' }, reads: true, always: false, ...more }
}

function said(autonomy: 'readonly' | 'supervised' | 'full', call: Rated, approveAllMedium = false): string {
  const { verdict, rule } = permit(call, { autonomy, approveAllMedium })
  return `${verdict} ${rule}`
}

describe('readonly', () => {
  test('refuses medium and high, even when it reads, even when approved in advance or always', () => {
    for (const risk of ['medium', 'high'] as const)
      expect(said('readonly', rated(risk, { always: true }), true)).toBe('deny autonomy.readonly')
  })
  test('refuses a low-risk call that writes or sends', () =>
    expect(said('readonly', rated('low', { reads: false }))).toBe('deny autonomy.readonly'))
  test('refuses a command that is not harmless, and a harmless one that writes', () => {
    expect(said('readonly', rated('medium', { harmless: false }))).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('low', { harmless: false }))).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('medium', { harmless: true, reads: false }))).toBe('deny autonomy.readonly')
  })
  test('allows low-risk reading and harmless commands', () => {
    expect(said('readonly', rated('low'))).toBe('allow autonomy.low')
    expect(said('readonly', rated('medium', { harmless: true }))).toBe('allow autonomy.harmless')
  })
})

describe('supervised', () => {
  test('blocks high, whatever was approved in advance', () => {
    expect(said('supervised', rated('high', { always: true }), true)).toBe('deny autonomy.high_blocked')
  })
  test('asks for medium, harmless commands included', () => {
    expect(said('supervised', rated('medium'))).toBe('ask autonomy.medium_asks')
    expect(said('supervised', rated('medium', { harmless: true }))).toBe('ask autonomy.medium_asks')
  })
  test('runs medium that was approved in advance, and what is always allowed', () => {
    expect(said('supervised', rated('medium'), true)).toBe('allow autonomy.approve_all_medium')
    expect(said('supervised', rated('medium', { always: true }))).toBe('allow autonomy.always')
  })
  test('runs low by itself', () => expect(said('supervised', rated('low', { reads: false }))).toBe('allow autonomy.low'))
})

test('full runs whatever reached it', () => {
  expect(risks.map((risk) => said('full', rated(risk, { reads: false })))).toEqual([
    'allow autonomy.low',
    'allow autonomy.full',
    'allow autonomy.full',
  ])
})

test('a stricter level never permits more than a laxer one', () => {
  const rank = { deny: 0, ask: 1, allow: 2 }
  const flags = [true, false]
  for (const risk of risks)
    for (const reads of flags)
      for (const harmless of [true, false, undefined]) {
        if (harmless === true && risk === 'high') continue
        const call = rated(risk, { reads, harmless })
        const [least, middle, most] = (['readonly', 'supervised', 'full'] as const).map((autonomy) =>
          permit(call, { autonomy, approveAllMedium: true }),
        )
        expect(rank[least?.verdict ?? 'allow']).toBeLessThanOrEqual(rank[middle?.verdict ?? 'deny'])
        expect(rank[middle?.verdict ?? 'allow']).toBeLessThanOrEqual(rank[most?.verdict ?? 'deny'])
      }
})

test('the risk of a call is its riskiest part, the first of equals', () => {
  const [a, b, c] = [
    { risk: 'medium' as const, reason: 'a' },
    { risk: 'medium' as const, reason: 'b' },
    { risk: 'high' as const, reason: 'c' },
  ]
  expect(highest(a, [b])).toBe(a)
  expect(highest(a, [b, c])).toBe(c)
  expect(highest(c, [a])).toBe(c)
  expect(highest({ risk: 'low', reason: 'd' }, [a])).toBe(a)
})

test('paths: seed risks inside the workspace, one step higher outside', () => {
  expect(pathRisk({ access: 'read', inside: true }).risk).toBe('low')
  expect(pathRisk({ access: 'write', inside: true })).toEqual({ risk: 'medium', reason: 'writes to workspace' })
  expect(pathRisk({ access: 'read', inside: false }).risk).toBe('medium')
  expect(pathRisk({ access: 'write', inside: false }).risk).toBe('high')
})
