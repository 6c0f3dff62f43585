import { describe, expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread, Thread } from '../threads/thread.ts'
import { standIn } from '../threads/thread-failure.ts'
import { verifyProgram } from './verify-program.ts'

/** The deep tier explores every scene; the fast one rounds of calls, and changes. */
const scenes = isDeep ? undefined : ['rounds', 'changes']

const prepared = (thread: AnyUserThread) => prepareThreads([thread]).map(({ thread }) => thread)

/** Requests one call after each event of the type, up to this many in all. */
const proposing = (type: 'run.start' | 'model.done' | 'act' | 'cancel', times: number): Thread<{ wants: boolean; made: number }> => ({
  name: 'asks',
  init: { wants: false, made: 0 },
  bid: ({ wants, made }) => ({
    wait: made < times ? [{ type }] : [],
    request: wants ? [{ type: 'propose', id: `t${made}`, call: { name: 'shell', input: { command: 'make' } } }] : [],
  }),
  next: ({ wants, made }, event) => (event.type === 'propose' ? { wants: false, made: made + 1 } : { wants: wants || made < times, made }),
})

describe('a thread that asks for calls breaks no property, whatever the gate says of them', () => {
  test.each([
    ['run.start', 1],
    ['model.done', 2],
    ['act', 1],
    ['cancel', 1],
  ] as const)('after %s', (type, times) => {
    const { ok, counterexample } = verifyProgram({ rules: prepared(proposing(type, times)), scenes })
    expect({ ok, counterexample }).toEqual({ ok: true, counterexample: undefined })
  })
})

test.each([
  ['thread-calls', 'P7'],
  ['safety', 'P1'],
  ['approval', 'P2'],
])('without %s such a thread shows why it is there', (missing, broken) => {
  const { counterexample } = verifyProgram({ rules: prepared(proposing('model.done', 1)), without: [missing] })
  expect(counterexample?.property).toBe(broken)
})

/** Returns the stand-in of a thread that failed at such an event. */
const failedAt = (type: RunEvent['type']): BThread<'well' | Parameters<typeof failed.bid>[0], RunEvent> => ({
  ...failed,
  init: 'well',
  bid: (phase) => (phase === 'well' ? { wait: [{ type }] } : failed.bid(phase)),
  next: (phase, event) => (phase === 'well' ? 'wants' : failed.next(phase, event)),
})
const failed = standIn({ thread: 'user/x', message: 'it failed' })

test.each(['run.start', 'propose', 'gate.open', 'act', 'tool.done', 'observe'] as const)(
  'after a thread failed at %s nothing begins, and every run comes to its end',
  (type) => {
    const { counterexample } = verifyProgram({ rules: [failedAt(type)], scenes })
    // It never answers, which is intended.
    expect(counterexample?.property ?? 'P15').toBe('P15')
  },
)
