import { describe, expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { AnyThread, Bid } from '../../kernel/thread.ts'
import { approval } from '../behaviours/approval.ts'
import { calls } from '../behaviours/calls.ts'
import { finisher } from '../behaviours/finisher.ts'
import { budget } from '../behaviours/limits/budget.ts'
import { parallel } from '../behaviours/limits/limits.ts'
import { loop } from '../behaviours/loop.ts'
import { safety } from '../behaviours/refusals.ts'
import { watchdog } from '../behaviours/watchdog.ts'
import type { RunEvent } from '../event.ts'
import { sentence } from './describe-trace.ts'
import { type VerifyReport, verifyProgram } from './verify-program.ts'

type Thread = AnyThread<RunEvent>
type Change = (bid: Bid<RunEvent>) => Bid<RunEvent>

/** The deep tier explores every scene; the fast one those in which the broken guard shows. */
const only = (...scenes: readonly string[]) => (isDeep ? undefined : scenes)

/** Returns the program with one thread changed. */
const changed = (thread: Thread, change: Change, scenes?: readonly string[]) =>
  verifyProgram({ without: [thread.name], rules: [weak(thread, change)], scenes })
const weak = (thread: Thread, change: Change): Thread => ({ ...thread, bid: (state) => change(thread.bid(state)) })
const blocking =
  (without: (type: string, id?: string) => boolean): Change =>
  (bid) => ({ ...bid, block: (bid.block ?? []).filter(({ type, id }) => !without(type, id)) })
const stranding: Thread = { name: 'stranding', priority: 15, init: null, bid: () => ({ block: [{ type: 'act' }] }), next: (state) => state }

const broken = ({ counterexample }: VerifyReport) => counterexample?.property
const told = ({ counterexample }: VerifyReport) => (counterexample?.steps ?? []).map(sentence)

describe('the program', () => {
  const report = verifyProgram()

  test('keeps every property in every state, and no search was cut', () => {
    expect(report.ok).toBe(true)
    expect(report.properties.filter(({ holds }) => holds !== true)).toEqual([])
    expect(report.properties.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, at) => `P${at}`))
    expect(report.states).toBeGreaterThan(10_000)
  })

  test('is not right because nothing happens in it', () => {
    expect(Object.entries(report.reached).filter(([, happened]) => !happened)).toEqual([])
    expect(Object.keys(report.reached)).toHaveLength(9)
  })

  test('is not said to hold when the search was cut off', () => {
    const cut = verifyProgram({ bounds: { maxStates: 500 } })
    expect(cut.ok).toBe(false)
    expect(cut.properties.find(({ id }) => id === 'P1')).toMatchObject({
      holds: null,
      note: 'cut off after too many states: rounds, budget, two calls at once, changes, changes at once, rule of two, channel, proof of done, wiggum, wiggum gets nowhere, wiggum alone, wiggum goes on, in circles',
    })
  })
})

describe('without a guard there is a counterexample', () => {
  test.each([
    ['the model is asked while calls of an interrupted run are open', loop, 'P7'],
    ['the run does not wait for calls of an interrupted run', finisher, 'P8'],
  ])('%s', (_, thread: Thread, property) => {
    const forgetful: Thread = {
      ...thread,
      next: (state, event) => thread.next(state, event.type === 'run.start' ? { ...event, continues: undefined } : event),
    }
    expect(broken(verifyProgram({ without: [thread.name], rules: [forgetful], scenes: ['goes on'] }))).toBe(property)
  })

  test.each([
    ['estop', 'P3', 'rounds'],
    ['cancel', 'P3', 'rounds'],
    ['safety', 'P1', 'rounds'],
    ['limits', 'P5', 'rounds'],
    ['budget', 'P5', 'budget'],
    ['approval', 'P2', 'rounds'],
    ['parallel', 'P10', 'budget'],
    ['calls', 'P7', 'rounds'],
    ['loop', 'P11', 'rounds'],
    ['finisher', 'P8', 'rounds'],
    ['repetition', 'P12', 'in circles'],
    ['egress', 'P17', 'rule of two'],
    ['channel', 'P18', 'channel'],
    ['modes', 'P16', 'rounds'],
    ['watchdog', 'P8', 'blocked in silence'],
  ])('%s: %s breaks', (name, property, scene) => {
    expect(broken(verifyProgram({ without: [name], scenes: only(scene) }))).toBe(property)
  })

  test('the counterexample is the shortest one, told step by step with who asked and who was held back', () => {
    expect(told(verifyProgram({ without: ['safety'] }))).toEqual([
      '1. run.start, from outside',
      '2. think, round 1, asked by loop',
      '3. model.done with a1 shell (deny, high), from outside',
      '4. propose a1, asked by calls',
      '5. act a1 shell {"command":"rm -rf /"}, asked by calls',
    ])
    expect(told(verifyProgram({ without: ['limits'] }))[4]).toBe('5. deny a1 by sample, asked by safety; held back: act a1 by safety')
  })
})

describe('a weakened guard has a counterexample', () => {
  test('approval that does not block the act', () => {
    expect(
      broken(
        changed(
          approval,
          blocking((type) => type === 'act'),
        ),
      ),
    ).toBe('P2')
  })

  test('approval that takes any decision: unknown gates, second answers, stale plans', () => {
    expect(
      broken(
        changed(
          approval,
          blocking((type) => type === 'approval.decision'),
        ),
      ),
    ).toBe('P2')
  })

  test('approval that does not look at the plan', () => {
    const careless: Change = (bid) => ({
      ...bid,
      block: bid.block?.map((one) =>
        one.match
          ? { ...one, match: (event) => event.type === 'approval.decision' && event.plan !== 'stale' && one.match?.(event) === true }
          : one,
      ),
    })
    const report = changed(approval, careless)
    expect(broken(report)).toBe('P2')
    expect(told(report).at(-1)).toContain('for plan "stale"')
  })

  test('budget that does not look at the clock', () => {
    const timeless = budget({ maxTokens: 20 })
    expect(broken(verifyProgram({ without: ['budget'], rules: [timeless] }))).toBe('P5')
  })

  test('budget that only counts afterwards', () => {
    const late = budget({ maxTokens: 40, maxMs: 1000 })
    expect(broken(verifyProgram({ without: ['budget'], rules: [late] }))).toBe('P5')
  })

  test('budget that lets a question be asked after its halt', () => {
    const asking = (limits: Parameters<typeof budget>[0]) =>
      weak(
        budget(limits),
        blocking((type) => type === 'gate.open'),
      )
    expect(broken(verifyProgram({ without: ['budget'], rules: [asking({ maxTokens: 20, maxMs: 1000 })] }))).toBe('P3')
  })

  test('parallel that does not look at paths, and one that does not count', () => {
    const pathless = weak(parallel({ maxParallel: 2 }), (bid) => ({ ...bid, block: bid.block?.filter(({ match }) => match === undefined) }))
    expect(broken(verifyProgram({ without: ['parallel'], rules: [pathless] }))).toBe('P10')
    expect(broken(verifyProgram({ without: ['parallel'], rules: [parallel({ maxParallel: 99 })] }))).toBe('P10')
  })

  test('calls that do not deny on a stop: a gate stays open that nobody needs to answer', () => {
    const report = changed(calls, (bid) => ({ ...bid, interrupt: [] }))
    expect(broken(report)).toBe('P8')
    expect(told(report).at(-1)).toMatch(/cancel|estop/)
  })

  test('calls that take results nobody waits for', () => {
    expect(
      broken(
        changed(
          calls,
          blocking((type) => type === 'tool.done'),
        ),
      ),
    ).toBe('P7')
  })

  test('calls that refuse on a stop what was never proposed', () => {
    const hasty: Thread = {
      ...calls,
      bid: (state) =>
        state.stop ? { ...calls.bid(state), request: [...denials(state), ...(calls.bid(state).request ?? [])] } : calls.bid(state),
    }
    const denials = (state: typeof calls.init): RunEvent[] =>
      state.entries.flatMap(({ call, judgement, phase }) =>
        phase === 'new' ? [{ type: 'deny', id: call.id, call, judgement, by: 'x', reason: 'x' } as const] : [],
      )
    expect(broken(verifyProgram({ without: ['calls'], rules: [hasty] }))).toBe('P7')
  })

  test('a loop that takes thoughts nobody asked for', () => {
    expect(broken(changed(loop, (bid) => ({ ...bid, block: [] })))).toBe('P11')
  })

  test('a finisher that lets things happen after the end', () => {
    const report = changed(finisher, (bid) => ({ ...bid, block: [] }))
    expect(broken(report)).toBe('P4')
  })

  test.each(['run.start', 'clock', 'mode.set', 'cancel', 'estop'])('a finisher that lets %s happen after the end', (type) => {
    expect(
      broken(
        changed(
          finisher,
          blocking((one) => one === type),
        ),
      ),
    ).toBe('P4')
  })

  test('a finisher that ends the run again and again', () => {
    const endless: Thread = { ...finisher, next: (state, event) => ({ ...finisher.next(state, event), finished: false }) }
    expect(broken(verifyProgram({ without: ['finisher'], rules: [endless] }))).toBe('P4')
  })

  test('a thread that keeps something from its state: a replay goes another way', () => {
    const memory = { flips: 0 }
    const impure: Thread = {
      name: 'impure',
      priority: 15,
      init: { flipped: false },
      bid: ({ flipped }) => ({ wait: [{ type: 'run.start' }], block: flipped ? [{ type: 'think' }] : [] }),
      next: () => ({ flipped: ++memory.flips % 2 === 0 }),
    }
    expect(broken(verifyProgram({ rules: [impure] }))).toBe('P9')
  })
})

describe('two guards for one thing', () => {
  test('safety blocks the act, and its denial comes before any act: either is enough', () => {
    const all = blocking(() => true)
    expect(changed(safety, all, only('rounds', 'changes')).ok).toBe(true)
    expect(changed(safety, (bid) => ({ ...bid, request: [] }), only('rounds', 'changes')).ok).toBe(true)
    expect(broken(changed(safety, (bid) => ({ wait: bid.wait })))).toBe('P1')
  })

  test('safety that asks for no denial: the watchdog ends the run, and without the watchdog it hangs', () => {
    const mute = weak(safety, (bid) => ({ ...bid, request: [] }))
    expect(broken(verifyProgram({ without: ['safety', 'watchdog'], rules: [mute] }))).toBe('P8')
  })

  test('the watchdog is for threads that block and say nothing: with it such a run ends, without it the run hangs', () => {
    const { counterexample } = verifyProgram({ without: ['watchdog'], scenes: only('blocked in silence') })
    expect(counterexample?.heldBack).toEqual(['act a1 by a blocker that says nothing'])
    // In wiggum mode a run may answer after rounds in which nothing ran.
    expect(broken(verifyProgram({ rules: [stranding], scenes: ['rounds'] }))).toBe('P15')
    expect(broken(verifyProgram({ without: ['watchdog'], rules: [stranding] }))).toBe('P8')
  })

  test('a watchdog that lets things begin after it ended the run: a second thought instead of an end', () => {
    const open = weak(watchdog, (bid) => ({ ...bid, block: [] }))
    const report = verifyProgram({ without: ['watchdog'], rules: [open, stranding] })
    expect(broken(report)).toBe('P3')
  })

  test('after the end the finisher shuts out what nobody sends any more: late results, replies and answers have a guard of their own', () => {
    const late = ['model.done', 'model.fail', 'tool.done', 'check.done', 'approval.decision', 'observe', 'halt']
    const open = blocking((type) => late.includes(type))
    expect(changed(finisher, open, only('rounds', 'changes')).ok).toBe(true)
  })
})

test('a run that hangs says what it hangs on', () => {
  const { counterexample } = verifyProgram({ rules: [stranding], without: ['watchdog'] })
  expect(counterexample?.heldBack).toEqual(['act a1 by stranding'])
})
