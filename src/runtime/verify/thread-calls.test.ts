import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { Thread } from '../threads/thread.ts'
import { standIn } from '../threads/thread-failure.ts'
import { verifyAgent } from './verify-agent.ts'
import { verifyProgram } from './verify-program.ts'

// A search takes a second at most; a busy machine takes longer.
setDefaultTimeout(30_000)

/** Asks for one call after each event of the type, in all so often. */
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

test('what takes the place of a failed thread lets nothing begin, and every run comes to its end', () => {
  const failed = standIn({ thread: 'user/x', message: 'it failed' })
  const { ok, properties, counterexample } = verifyProgram({ rules: [{ ...failed, samples: [{ name: 'shell', input: {} }] }] })
  expect([ok, counterexample]).toEqual([true, undefined])
  expect(properties.find(({ id }) => id === 'P15')).toMatchObject({ holds: null })
})
