import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { Thread } from '../threads/thread.ts'
import { standIn } from '../threads/thread-failure.ts'
import { verifyAgent } from './verify-agent.ts'
import { verifyProgram } from './verify-program.ts'

// A search takes a second at most; a busy machine takes longer.
setDefaultTimeout(30_000)

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
    const { ok, counterexample } = verifyAgent({ threads: [proposing(type, times)] })
    expect({ ok, counterexample }).toEqual({ ok: true, counterexample: undefined })
  })
})

test.each([
  ['thread-calls', 'P7'],
  ['safety', 'P1'],
  ['approval', 'P2'],
])('without %s such a thread shows why it is there', (missing, broken) => {
  const rules = prepareThreads([proposing('model.done', 1)]).map(({ thread }) => thread)
  const { counterexample } = verifyProgram({ rules, without: [missing] })
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
    const { counterexample } = verifyProgram({ rules: [failedAt(type)] })
    // It never answers, which is intended.
    expect(counterexample?.property ?? 'P15').toBe('P15')
  },
)
