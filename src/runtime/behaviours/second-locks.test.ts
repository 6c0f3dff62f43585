import { describe, expect, test } from 'bun:test'
import { replay } from '../../kernel/replay-steps.ts'
import type { AnyThread, Bid } from '../../kernel/thread.ts'
import type { Judgement, RunEvent } from '../event.ts'
import { program } from '../program.ts'
import { approval } from './approval.ts'
import { calls } from './calls.ts'
import { cancel, estop } from './estop.ts'

/** In the whole program another lock precedes each of these, so each is tested here without that one. */

const call = { id: 'a', name: 'shell', input: {} }
const judgement: Judgement = { verdict: 'ask', risk: 'medium', rule: 't', reason: 't', plan: 'p', summary: 's', writes: [] }
const proposed = { id: 'a', call, judgement }
const decision = (allow: boolean): RunEvent => ({ type: 'approval.decision', id: 'a', allow, by: 'ann', plan: 'p' })

const always = (name: string, bid: Bid<RunEvent>): AnyThread<RunEvent> => ({
  name,
  priority: 90,
  init: null,
  bid: () => bid,
  next: (state) => state,
})

/** Sends the events one by one. */
function play(threads: readonly AnyThread<RunEvent>[], ...externals: RunEvent[]) {
  const { selected, rejected, blocked } = replay({ threads, externals })
  return {
    happened: selected.map(({ event }) => event),
    rejected: rejected.map(({ event, by }) => `${event.type} by ${by}`),
    blocked: blocked.map(({ event, by }) => `${event.type} by ${by.join()}`),
  }
}

describe('approval', () => {
  const silent = always('silent', { block: [{ type: 'gate.open' }] })

  test('rejects a decision about a question that nobody was shown', () => {
    const { happened, rejected } = play([approval, silent], { type: 'propose', ...proposed }, decision(true))
    expect(happened.map(({ type }) => type)).toEqual(['propose'])
    expect(rejected).toEqual(['approval.decision by approval'])
  })

  test('takes the very same decision once the question is open', () => {
    const { happened, rejected } = play([approval], { type: 'propose', ...proposed }, decision(true))
    expect(happened.map(({ type }) => type)).toEqual(['propose', 'gate.open', 'approval.decision'])
    expect(rejected).toEqual([])
  })
})

describe.each([
  [estop, { type: 'estop', reason: 'stopped' }],
  [cancel, { type: 'cancel', by: 'user' }],
] as const)('$name', (stopper, stop) => {
  const beginnings: readonly RunEvent[] = [
    { type: 'act', ...proposed },
    { type: 'think', round: 1 },
    { type: 'check', id: 'c', name: 'npm test', tier: 1, iteration: 1 },
    { type: 'gate.open', ...proposed },
  ]
  const eager = (event: RunEvent): AnyThread<RunEvent> => ({
    name: 'eager',
    priority: 90,
    init: false,
    bid: (wants: boolean) => (wants ? { request: [event] } : { wait: [{ type: stop.type }] }),
    next: (_, { type }) => type === stop.type,
  })

  test.each(beginnings.map((event) => [event.type, event] as const))(
    'by itself holds back a %s that is asked for after it',
    (type, event) => {
      const { happened, blocked } = play([stopper, eager(event)], stop)
      expect(happened).toEqual([stop])
      expect(blocked).toEqual([`${type} by ${stopper.name}`])
    },
  )
})

describe('modes', () => {
  const threads = program({ maxToolRounds: 1, maxParallel: 1 })

  test('rejects wiggum mode by name, before a run and in it, whoever sends it', () => {
    const start: RunEvent = { type: 'run.start', prompt: 'go', mode: 'structured', at: 0, model: 'm' }
    const { rejected } = play(threads, { type: 'mode.set', mode: 'wiggum' }, start, { type: 'mode.set', mode: 'wiggum', maxIterations: 3 })
    expect(rejected).toEqual(['mode.set by modes', 'mode.set by modes'])
  })

  test('lets the other mode be set', () => {
    expect(play(threads, { type: 'mode.set', mode: 'structured' }).rejected).toEqual([])
  })
})

describe('calls', () => {
  const held: AnyThread<RunEvent> = {
    name: 'held',
    priority: 1,
    init: true,
    bid: (closed: boolean) => ({ wait: [{ type: 'approval.decision' }], block: closed ? [{ type: 'act' }] : [] }),
    next: () => false,
  }
  const reply: RunEvent = {
    type: 'model.done',
    parts: [],
    proposals: [{ call, judgement }],
    usage: { inputTokens: 0, outputTokens: 0 },
    model: 'm',
  }
  const acted = (allow: boolean) => play([calls, held], reply, decision(allow)).happened.find(({ type }) => type === 'act')

  test('does not take a no for the yes that a call runs with', () => {
    expect(acted(false)).toEqual({ type: 'act', ...proposed })
  })

  test('writes down whose yes it was', () => {
    expect(acted(true)).toEqual({ type: 'act', ...proposed, approval: 'ann' })
  })
})
