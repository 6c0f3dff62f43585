import { describe, expect, test } from 'bun:test'
import type { Proposal } from '../event.ts'
import { explainRules } from './explain.ts'
import { parseRules } from './parse-rules.ts'

const proposal = (command: string): Proposal => ({
  call: { id: 'call_1', name: 'shell', input: { command } },
  judgement: { verdict: 'ask', risk: 'medium', rule: 'autonomy.medium_asks', reason: '', plan: 'p', summary: '', writes: [] },
})

function explain(rule: object, command = 'git push --force') {
  const places = { workspace: '/ws', home: '/home/u' }
  const { rules, problems } = parseRules({ text: JSON.stringify(rule), file: '/rules/a.json', places })
  expect(problems).toEqual([])
  return explainRules(rules, proposal(command))
}

const rule = { name: 'no-push', on: { type: 'propose', tool: 'shell' }, when: { 'input.command': { glob: 'git push*' } }, reason: 'no' }

describe('a rule that looks at the call', () => {
  test('denies it', () =>
    expect(explain(rule)).toEqual([{ rule: 'rule.no-push', file: '/rules/a.json', denies: true, endsRun: false, reason: 'no' }]))

  test('ends the run and lets the call pass, or both', () => {
    expect(explain({ ...rule, block: ['think'] })).toMatchObject([{ denies: false, endsRun: true }])
    expect(explain({ ...rule, block: ['act', 'think'] })).toMatchObject([{ denies: true, endsRun: true }])
  })

  test('would deny it later: after another call, or once it came too often', () => {
    expect(explain({ ...rule, after: { tool: 'file_read' } })).toMatchObject([{ denies: false, after: { tool: 'file_read' } }])
    expect(explain({ ...rule, atMost: 2 })).toMatchObject([{ denies: false, atMost: 2 }])
  })

  test('denies it until another call has succeeded', () =>
    expect(explain({ ...rule, until: { tool: 'time' } })).toMatchObject([{ denies: true, until: { tool: 'time' } }]))
})

test('a rule that looks at other calls is left out', () => {
  expect(explain(rule, 'git pull')).toEqual([])
  expect(explain({ ...rule, when: { verdict: 'deny' } })).toEqual([])
})
