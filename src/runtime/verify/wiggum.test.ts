import { expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { AnyThread, Bid } from '../../kernel/thread.ts'
import { approval } from '../behaviours/approval.ts'
import { cancel } from '../behaviours/estop.ts'
import { finisher } from '../behaviours/finisher.ts'
import { budget } from '../behaviours/limits/budget.ts'
import { loop } from '../behaviours/loop.ts'
import { watchdog } from '../behaviours/watchdog.ts'
import { modes, wiggumGuard, wiggumLoop } from '../behaviours/wiggum/wiggum-loop.ts'
import type { RunEvent } from '../event.ts'
import { sentence } from './describe-trace.ts'
import { verifyProgram } from './verify-program.ts'

type Thread = AnyThread<RunEvent>

const weak = (thread: Thread, change: (bid: Bid<RunEvent>) => Bid<RunEvent>): Thread => ({
  ...thread,
  bid: (state) => change(thread.bid(state)),
})
const unblocking = (thread: Thread, ...types: string[]) =>
  weak(thread, (bid) => ({ ...bid, block: bid.block?.filter(({ type }) => !types.includes(type)) }))
/** Shows the thread another event in the place of those of one type; undefined: it does not see the event. */
function mishearing<Type extends RunEvent['type']>(
  thread: Thread,
  type: Type,
  hear: (event: Extract<RunEvent, { type: Type }>) => RunEvent | undefined,
): Thread {
  return {
    ...thread,
    next(state, event) {
      const heard = event.type === type ? hear(event as Extract<RunEvent, { type: Type }>) : event
      return heard === undefined ? state : thread.next(state, heard)
    },
  }
}

/** The deep tier explores every scene; the fast one those in which the broken guard shows. */
function broken(scenes: readonly string[], ...threads: Thread[]) {
  const { counterexample, ok } = verifyProgram({ without: threads.map(({ name }) => name), rules: threads, ...(isDeep ? {} : { scenes }) })
  return { ok, property: counterexample?.property, steps: (counterexample?.steps ?? []).map(sentence) }
}

test.each([
  ['wiggum-loop', 'P11', 'wiggum'],
  ['wiggum-guard', 'P19', 'wiggum'],
  ['modes', 'P16', 'wiggum'],
])('without %s %s breaks', (name, property, scene) => {
  const { counterexample } = verifyProgram({ without: [name], scenes: [scene] })
  expect(counterexample?.property).toBe(property)
})

test.each([
  ['takes the word of the model', 0],
  ['counts one check for all', 1],
])('a finisher that %s', (_, count) => {
  const careless = mishearing(finisher, 'run.start', ({ wiggum, ...event }) => ({
    ...event,
    ...(wiggum && count > 0 ? { wiggum: { ...wiggum, checks: wiggum.checks.slice(0, count) } } : {}),
  }))
  const { property, steps } = broken(['wiggum'], careless)
  expect([property, steps.at(-1)]).toEqual(['P6', expect.stringContaining('finish (answered)')])
})

test('checks that passed on different trees count as one: the loop and the finisher do not look at the tree', () => {
  const treeless = (thread: Thread) => mishearing(thread, 'check.done', (event) => ({ ...event, tree: 't1' }))
  expect(broken(['wiggum'], treeless(finisher), treeless(wiggumLoop)).property).toBe('P6')
})

test('a finisher that takes a failed check for a passed one', () => {
  expect(
    broken(
      ['wiggum'],
      mishearing(finisher, 'check.done', (event) => ({ ...event, pass: true })),
    ).property,
  ).toBe('P6')
})

test('a loop that takes results of checks that do not run, forged or late', () => {
  const { property, steps } = broken(['wiggum'], unblocking(wiggumLoop, 'check.done'))
  expect([property, steps.at(-1)]).toEqual(['P11', expect.stringContaining('check.done ghost')])
  const lateOnly = weak(wiggumLoop, (bid) => ({
    ...bid,
    block: bid.block?.map((one) => ({ ...one, match: (event: RunEvent) => event.type === 'check.done' && event.id === 'ghost' })),
  }))
  expect(broken(['wiggum'], lateOnly).property).toBe('P11')
})

test('a loop that tries again after a cancel', () => {
  const deaf: Thread = { ...wiggumLoop, next: (state, event) => ({ ...wiggumLoop.next(state, event), over: false }) }
  expect(broken(['wiggum'], deaf).property).toBe('P3')
})

test('a cancel that lets checks begin is noticed, and the loop stops too: either is enough', () => {
  expect(broken(['wiggum'], unblocking(cancel, 'check')).ok).toBe(true)
  const deaf: Thread = { ...wiggumLoop, next: (state, event) => ({ ...wiggumLoop.next(state, event), over: false }) }
  expect(broken(['wiggum'], unblocking(cancel, 'check'), deaf).property).toBe('P3')
})

test.each([
  [
    'counts no failures in a row',
    'wiggum gets nowhere',
    mishearing(wiggumGuard, 'run.start', (event) => ({ ...event, wiggum: event.wiggum && { ...event.wiggum, maxSame: 99 } })),
  ],
  [
    'has no limit of iterations',
    'wiggum',
    mishearing(wiggumGuard, 'run.start', (event) => ({ ...event, wiggum: event.wiggum && { ...event.wiggum, maxIterations: 99 } })),
  ],
  ['does not look at the clock', 'wiggum', mishearing(wiggumGuard, 'clock', () => undefined)],
  [
    'begins to count again when a run continues',
    'wiggum goes on',
    mishearing(wiggumGuard, 'run.start', (event) => ({ ...event, continues: undefined })),
  ],
])('a guard that %s', (_, scene, thread) => {
  expect(broken([scene], thread).property).toBe('P19')
})

test('a guard that lets the model be asked after its halt', () => {
  const open = unblocking(wiggumGuard, 'think', 'check', 'retry')
  expect(broken(['wiggum alone', 'wiggum'], open).property).toBe('P3')
})

test('a run that continues thinks before its checks', () => {
  const eager = mishearing(loop, 'run.start', (event) => ({ ...event, continues: undefined }))
  expect(['P7', 'P8']).toContain(broken(['wiggum goes on'], eager).property ?? '')
})

test.each([
  ['does not count the iterations', mishearing(budget({ maxTokens: 9 }), 'retry', () => undefined)],
  [
    'forgets what was spent before the crash',
    mishearing(budget({ maxTokens: 9 }), 'run.start', (event) => ({ ...event, continues: undefined })),
  ],
])('a budget that %s', (_, thread) => {
  expect(broken(['wiggum goes on'], thread).property).toBe('P5')
})

test('approval that waits for a person', () => {
  const attended = mishearing(approval, 'run.start', () => undefined)
  expect(broken(['wiggum alone'], attended).property).toBe('P16')
})

test('modes that let a run change its mode, and a start without checks', () => {
  expect(broken(['wiggum'], unblocking(modes, 'mode.set')).property).toBe('P16')
  expect(broken(['wiggum'], unblocking(modes, 'run.start')).property).toBe('P16')
})

test('a watchdog that does not see checks ends the run while one runs', () => {
  const blind = mishearing(watchdog, 'check', () => undefined)
  expect(broken(['wiggum'], blind).property).toBe('P8')
})
