import { expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { AnyThread, Bid } from '../../kernel/thread.ts'
import { approval } from '../behaviours/approval.ts'
import { calls } from '../behaviours/calls.ts'
import { cancel, estop } from '../behaviours/estop.ts'
import { finisher } from '../behaviours/finisher.ts'
import { parallel } from '../behaviours/limits/limits.ts'
import { safety } from '../behaviours/refusals.ts'
import type { RunEvent } from '../event.ts'
import { sentence } from './describe-trace.ts'
import { verifyProgram } from './verify-program.ts'

type Thread = AnyThread<RunEvent>
type Change = (bid: Bid<RunEvent>) => Bid<RunEvent>

const weak = (thread: Thread, change: Change): Thread => ({ ...thread, bid: (state) => change(thread.bid(state)) })
const unblocking =
  (type: string): Change =>
  (bid) => ({ ...bid, block: bid.block?.filter((one) => one.type !== type) })
const deafTo =
  (type: string): Change =>
  (bid) => ({ ...bid, wait: bid.wait?.filter((one) => one.type !== type) })

/** The deep tier explores every scene; the fast one those that change something, where a broken guard shows. */
const scenes = isDeep ? undefined : ['changes', 'changes at once']

/** Returns the property that the program with these threads in the place of its own breaks, and the shortest way there. */
function broken(...threads: Thread[]) {
  const { counterexample, ok } = verifyProgram({ without: threads.map(({ name }) => name), rules: threads, scenes })
  return { ok, property: counterexample?.property, steps: (counterexample?.steps ?? []).map(sentence) }
}

test('safety that does not look at changes: what the gate denied is applied', () => {
  expect(broken(weak(safety, deafTo('tool.changed')))).toEqual({
    ok: false,
    property: 'P1',
    steps: [
      '1. run.start, from outside',
      '2. think, round 1, asked by loop',
      '3. model.done with a1 shell (allow, medium), from outside',
      '4. propose a1, asked by calls',
      '5. act a1 shell {"command":"make"}, asked by calls',
      '6. tool.changed a1 "digest-a1" (deny), from outside',
      '7. apply a1 "digest-a1", asked by calls',
    ],
  })
})

test('approval that does not look at changes: they are applied without a yes', () => {
  const { property, steps } = broken(weak(approval, deafTo('tool.changed')))
  expect([property, steps.slice(-2)]).toEqual([
    'P2',
    ['6. tool.changed a1 "digest-a1" (ask), from outside', '7. apply a1 "digest-a1", asked by calls'],
  ])
})

test('approval that blocks the act, but not the application', () => {
  const { property, steps } = broken(weak(approval, unblocking('apply')))
  expect([property, steps.at(-1)]).toEqual(['P2', expect.stringContaining('apply a1')])
})

test('approval that takes the plan of the call for the digest of its changes', () => {
  const careless: typeof approval = {
    ...approval,
    bid(state) {
      const bid = approval.bid(state)
      const ofCall = (event: RunEvent) =>
        event.type === 'approval.decision' && state.gates.some(({ changed, judgement }) => changed && judgement.plan === event.plan)
      const block = bid.block?.map((one) => ({
        ...one,
        match: one.match && ((event: RunEvent) => !ofCall(event) && one.match?.(event) === true),
      }))
      return { ...bid, block }
    },
  }
  const { property, steps } = broken(careless)
  expect([property, steps.at(-1)]).toEqual(['P2', expect.stringContaining('a1 allow by mallory for plan "plan-a1"')])
})

test.each([
  ['a cancel', cancel],
  ['an emergency stop', estop],
])('after %s nothing is applied: the stop blocks it, and the call asks for the drop instead; either is enough', (_, stop) => {
  expect(broken(weak(stop, unblocking('apply'))).ok).toBe(true)
  const bid: typeof calls.bid = (state) =>
    calls.bid({ ...state, stop: isChanging(state) && state.stop?.by === stop.name ? null : state.stop })
  const stubborn: typeof calls = { ...calls, bid }
  const isChanging = ({ entries }: typeof calls.init) => entries.some(({ phase }) => phase === 'changed')
  expect(broken(stubborn).property).toBe('P8')
  const both = broken(stubborn, weak(stop, unblocking('apply')))
  expect([both.property, both.steps.at(-1)]).toEqual(['P3', expect.stringContaining('apply a1')])
})

test('calls that take changes nobody waits for', () => {
  expect(broken(weak(calls, unblocking('tool.changed'))).property).toBe('P7')
})

test('parallel that frees the slot before the changes are decided: another call writes the same path meanwhile', () => {
  const one = parallel({ maxParallel: 1 })
  const early: typeof one = {
    ...one,
    bid: (state) => ({ ...one.bid(state), wait: [{ type: 'act' }, { type: 'tool.done' }, { type: 'tool.changed' }] }),
    next: (state, event) => one.next(state, event.type === 'tool.changed' ? { ...event, type: 'tool.done' } : event),
  }
  const { property, steps } = broken(early)
  expect([property, steps.at(-3), steps.at(-1)]).toEqual([
    'P10',
    expect.stringContaining('tool.changed a1'),
    expect.stringContaining('act b1'),
  ])
})

test('a finisher that does not count drops: the run never ends', () => {
  expect(broken(weak(finisher, deafTo('drop'))).property).toBe('P8')
})

test('a thread that reports changes in the place of the world', () => {
  const forger: Thread = {
    name: 'forger',
    priority: 40,
    init: [],
    bid: (wanted) => ({ wait: [{ type: 'act' }], request: wanted }),
    next(_, event) {
      if (event.type !== 'act') return []
      const { id, call, judgement } = event
      const review = { digest: 'forged', verdict: 'apply', rule: '', reason: '', summary: '', count: 0 } as const
      return [{ type: 'tool.changed', id, call, judgement, outcome: { status: 'allowed', output: '' }, review }]
    },
  }
  expect(broken(forger).property).toBe('P13')
})

test('a thread that drops what is being applied', () => {
  const dropper: Thread = {
    name: 'dropper',
    priority: 5,
    init: [],
    bid: (wanted) => ({ wait: [{ type: 'apply' }, { type: 'tool.done' }], request: wanted }),
    next(_, event) {
      if (event.type !== 'apply') return []
      const { id, call, judgement, review } = event
      return [{ type: 'drop', id, call, judgement, review, outcome: { status: 'allowed', output: '' }, by: 'dropper', reason: '' }]
    },
  }
  expect(broken(dropper).property).toBe('P7')
})

test('a thread that applies other changes than were judged', () => {
  const swapper: Thread = {
    name: 'swapper',
    priority: 5,
    init: [],
    bid: (wanted) => ({ wait: [{ type: 'tool.changed' }, { type: 'drop' }], request: wanted }),
    next(_, event) {
      if (event.type !== 'tool.changed') return []
      const { id, call, judgement, review } = event
      return [{ type: 'apply', id, call, judgement, review: { ...review, digest: 'other' } }]
    },
  }
  const { property, steps } = broken(swapper)
  expect([property, steps.at(-1)]).toEqual(['P1', '7. apply a1 "other", asked by swapper'])
})
