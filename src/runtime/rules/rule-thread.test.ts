import { describe, expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import { createEngine } from '../../kernel/engine.ts'
import type { JsonObject } from '../../kit/json.ts'
import type { Judgement, RunEvent } from '../event.ts'
import { program } from '../program.ts'
import { verifyProgram } from '../verify/verify-program.ts'
import { parseRules } from './parse-rules.ts'
import { ruleThread } from './rule-thread.ts'

const rule = (more: object) => {
  const { rules, problems } = parseRules({
    text: JSON.stringify({ name: 'r', on: { type: 'propose' }, ...more }),
    file: 'r.json',
    places: { workspace: '/w', home: '/h' },
  })
  expect(problems).toEqual([])
  return rules.map(ruleThread)
}

type Asked = [tool: string, input?: JsonObject, verdict?: Judgement['verdict']]

/** Runs once: in each round the model requests these calls, and each call that runs succeeds unless its input says `fail`. */
function run(rules: ReturnType<typeof rule>, ...rounds: Asked[][]) {
  const engine = createEngine<RunEvent>({ threads: [...program({ maxToolRounds: 20, maxParallel: 9 }), ...rules] })
  const events: RunEvent[] = []
  const send = (event: RunEvent) => {
    engine.send(event)
    events.push(...engine.superstep().selected.map(({ event }) => event))
  }
  send({ type: 'run.start', prompt: 'go', mode: 'structured', at: 0, model: 'm' })
  for (const [round, calls] of [...rounds, []].entries()) {
    const from = events.length
    const proposals = calls.map(([name, input = {}, verdict = 'allow'], at) => ({
      call: { id: `${name}${round}${at || ''}`, name, input },
      judgement: { verdict, risk: 'low', rule: 'test', reason: 'test', plan: 'p', summary: name, writes: [] } as const,
    }))
    send({ type: 'model.done', parts: [], proposals, usage: { inputTokens: 0, outputTokens: 0 }, model: 'm' })
    for (const event of events.slice(from)) {
      if (event.type === 'act')
        send({ type: 'tool.done', id: event.id, outcome: { status: event.call.input.fail ? 'failed' : 'allowed', output: 'ok' } })
    }
  }
  const of = (type: RunEvent['type']) => events.flatMap((event) => (event.type === type && 'id' in event ? [event.id] : []))
  return { events, acted: of('act'), denied: of('deny'), gates: of('gate.open'), rejected: engine.explain(), last: events.at(-1) }
}

test('a blocked call ends as a denied one, by the name of the rule and with its reason for the model, and the run goes on', () => {
  const { events, acted, last } = run(rule({ on: { type: 'propose', tool: 'http' }, reason: 'no network here' }), [['http'], ['file_read']])
  expect(acted).toEqual(['file_read01'])
  expect(events.find(({ type }) => type === 'deny')).toMatchObject({ id: 'http0', by: 'rule.r', reason: 'no network here' })
  const observed = events.find((event) => event.type === 'observe')
  expect(observed?.results[0]).toMatchObject({ ok: false, text: 'Denied by rule.r: no network here' })
  expect(last).toMatchObject({ type: 'finish', ending: { stop: 'end_turn', code: 'answered' } })
})

test('nobody is asked about a call that a rule forbids', () => {
  const { gates, denied } = run(rule({ on: { type: 'propose', tool: 'shell' } }), [['shell', {}, 'ask']])
  expect({ gates, denied }).toEqual({ gates: [], denied: ['shell0'] })
})

test('a rule does not make a forbidden call less forbidden', () => {
  const { events } = run(rule({ on: { type: 'propose', tool: 'http' } }), [
    ['shell', {}, 'deny'],
    ['http', {}, 'deny'],
  ])
  expect(events.flatMap((event) => (event.type === 'deny' ? [event.by] : []))).toEqual(['test', 'test'])
})

describe('after', () => {
  const afterSecret = { on: { type: 'propose', tool: 'http' }, after: { tool: 'file_read', when: { 'input.path': { path: '**/.env' } } } }

  test('lets pass what comes before, and blocks from then on, in the same reply too', () => {
    const { acted } = run(rule(afterSecret), [['http'], ['file_read', { path: 'a/../.env' }], ['http']], [['http']])
    expect(acted).toEqual(['http0', 'file_read01'])
  })

  test('counts the proposal alone: a read that was refused, or failed, arms the rule as well', () => {
    expect(run(rule(afterSecret), [['file_read', { path: '.env' }, 'deny']], [['http']]).acted).toEqual([])
    expect(run(rule(afterSecret), [['file_read', { path: '.env', fail: true }]], [['http']]).acted).toEqual(['file_read0'])
    expect(run(rule(afterSecret), [['file_read', { path: 'a' }]], [['http']]).acted).toEqual(['file_read0', 'http1'])
  })
})

describe('until', () => {
  const tested = {
    on: { type: 'propose', tool: 'shell' },
    when: { 'input.command': { glob: 'git push*' } },
    until: { tool: 'shell', when: { 'input.command': 'npm test' } },
  }
  const push: Asked = ['shell', { command: 'git push' }]

  test('blocks before, and no longer after such a call succeeded', () => {
    expect(run(rule(tested), [push], [['shell', { command: 'npm test' }]], [push], [push]).acted).toEqual(['shell1', 'shell2', 'shell3'])
  })

  test('a test that failed, was refused or is only wished for in the same reply lifts nothing', () => {
    expect(run(rule(tested), [['shell', { command: 'npm test', fail: true }]], [push]).acted).toEqual(['shell0'])
    expect(run(rule(tested), [['shell', { command: 'npm test' }, 'deny']], [push]).acted).toEqual([])
    expect(run(rule(tested), [['shell', { command: 'npm test' }], push]).acted).toEqual(['shell0'])
  })
})

test('atMost lets so many through and not one more; what others refused counts too', () => {
  const twice = rule({ on: { type: 'propose', tool: 'http' }, atMost: 2 })
  expect(run(twice, [['http'], ['http']], [['http']], [['http'], ['file_read']]).acted).toEqual(['http0', 'http01', 'file_read21'])
  expect(run(twice, [['http', {}, 'deny'], ['http', {}, 'deny'], ['http']]).acted).toEqual([])
  expect(run(rule({ on: { type: 'propose', tool: 'http' }, atMost: 0 }), [['http']]).acted).toEqual([])
})

test('a rule that blocks the next thought ends the run, which says by whom', () => {
  const { acted, last, rejected } = run(rule({ on: { type: 'propose', tool: 'http' }, block: ['think'] }), [['http']], [['http']])
  expect(acted).toEqual(['http0'])
  expect(last).toMatchObject({ type: 'finish', ending: { stop: 'error', code: 'stalled' } })
  expect(rejected.find(({ event }) => event.type === 'think')?.by).toContain('rule.r')
})

describe('in the model checker', () => {
  /** The deep tier explores every scene; the fast one those that call what the rules are about. */
  const scenes = isDeep ? undefined : ['rules in rounds', 'rules at once']
  const some = [
    ...rule({
      name: 'no-http-after-secret',
      on: { type: 'propose', tool: 'http' },
      after: { tool: 'file_read', when: { 'input.path': { path: '**/.env' } } },
    }),
    ...rule({
      name: 'test-first',
      on: { type: 'propose', tool: 'shell' },
      when: { 'input.command': { glob: 'git push*' } },
      until: { tool: 'shell', when: { 'input.command': 'npm test' } },
    }),
    ...rule({ name: 'two', on: { type: 'propose', tool: 'http' }, atMost: 2, block: ['act', 'think'] }),
  ]

  test('rules keep every property, and each was seen to block', () => {
    const report = verifyProgram({ rules: some, scenes })
    expect(report.ok).toBe(true)
    expect(report.idleRules).toEqual([])
  })

  test('an operator may rule that no run has a second round: that is said, and breaks nothing', () => {
    const { ok, properties } = verifyProgram({ rules: rule({ name: 'one-round', block: ['think'] }), scenes })
    expect(ok).toBe(true)
    expect(properties.find(({ id }) => id === 'P15')).toMatchObject({ holds: null, note: 'your rules let no run come that far' })
  })

  test('a rule does not excuse a thread beside it', () => {
    const deaf = { name: 'deaf', priority: 15, init: null, bid: () => ({ block: [{ type: 'observe' as const }] }), next: () => null }
    const report = verifyProgram({ rules: [...rule({ name: 'one-round', block: ['think'] }), deaf], scenes })
    expect(report.counterexample?.property).toBe('P15')
  })

  test('a rule that no explored run comes to is named', () => {
    const far = rule({ name: 'far', on: { type: 'propose', tool: 'http' }, atMost: 50 })
    expect(verifyProgram({ rules: far, scenes }).idleRules).toEqual(['rule.far'])
  })

  test('a rule that blocks and asks for no denial shows: without the watchdog the run hangs on it', () => {
    const [thread] = some
    if (thread === undefined) throw new Error('no rule')
    const mute = { ...(rule({ name: 'mute', on: { type: 'propose', tool: 'http' } })[0] ?? thread) }
    const silent = { ...mute, bid: (state: typeof mute.init) => ({ ...mute.bid(state), request: [] }) }
    expect(verifyProgram({ rules: [silent], without: ['watchdog'], scenes }).counterexample?.heldBack).toEqual(['act a1 by rule.mute'])
    const spoken = verifyProgram({ rules: [mute], without: ['watchdog'], scenes: isDeep ? undefined : ['blocked in silence'] })
    expect(spoken.counterexample?.heldBack).toEqual(['act a1 by a blocker that says nothing'])
  })
})
