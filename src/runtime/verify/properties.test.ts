import { describe, expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { AnyThread, Bid, BThread, Pattern } from '../../kernel/thread.ts'
import { egress } from '../behaviours/guards/egress.ts'
import type { RunEvent } from '../event.ts'
import { sentence } from './describe-trace.ts'
import { verifyProgram } from './verify-program.ts'

type Egress = typeof egress

function broken(thread: Egress) {
  const { counterexample } = verifyProgram({ without: ['egress'], rules: [thread], scenes: isDeep ? undefined : ['rule of two'] })
  return { property: counterexample?.property, steps: (counterexample?.steps ?? []).map(sentence) }
}
const deaf = (type: RunEvent['type']): Egress => ({
  ...egress,
  next: (state, event) => (event.type === type ? state : egress.next(state, event)),
})

test('egress that does not follow what calls read', () => {
  expect(broken(deaf('act')).property).toBe('P17')
})

test('egress that looks at each call alone: two of one reply work together', () => {
  const { property, steps } = broken({
    ...egress,
    next: (state, event) => (event.type === 'model.done' ? { ...egress.next(state, event), reply: state.read } : egress.next(state, event)),
  })
  expect(property).toBe('P17')
  expect(steps.at(-1)).toMatch(/^\d+\. act [ab]2 /)
})

test('egress that asks and does not wait for the answer', () => {
  const hasty: Egress = { ...egress, bid: (state) => ({ ...egress.bid(state), block: [] }) }
  expect(broken(hasty).property).toBe('P2')
})

test('egress that asks about another plan than it would run', () => {
  const liar: Egress = {
    ...egress,
    bid(state) {
      const { request = [], ...bid } = egress.bid(state)
      const lies = request.map((event) =>
        event.type === 'gate.open' ? { ...event, judgement: { ...event.judgement, plan: 'harmless' } } : event,
      )
      return { ...bid, request: lies }
    },
  }
  expect(broken(liar).property).toBe('P2')
})

test('egress that takes a no for a yes', () => {
  const deafToNo: Egress = {
    ...egress,
    next: (state, event) => egress.next(state, event.type === 'approval.decision' ? { ...event, allow: true } : event),
  }
  expect(['P2', 'P17']).toContain(broken(deafToNo).property ?? '')
})

/** Returns the checker's findings for the program with this thread in it. */
function planted(thread: AnyThread<RunEvent>) {
  const { ok, counterexample } = verifyProgram({ rules: [thread] })
  const { property, steps = [], heldBack } = counterexample ?? {}
  return { ok, property, steps: steps.map(sentence), heldBack }
}

/** Requests the result of `answer` for each event of one type. */
const answering = (type: RunEvent['type'], answer: (event: RunEvent) => readonly RunEvent[]): BThread<readonly RunEvent[], RunEvent> => ({
  name: 'planted',
  priority: 40,
  init: [],
  bid: (wanted) => ({ wait: [{ type }], request: wanted }),
  next: (_, event) => (event.type === type ? answer(event) : []),
})

const always = (bid: Bid<RunEvent>): AnyThread<RunEvent> => ({
  name: 'planted',
  priority: 40,
  init: null,
  bid: () => bid,
  next: (state) => state,
})

/** Lets this many events of one type happen and blocks all that follow. */
const blockingFrom = (type: RunEvent['type'], passed: number): BThread<number, RunEvent> => ({
  name: 'planted',
  priority: 40,
  init: 0,
  bid: (seen) => (seen < passed ? { wait: [{ type }] } : { block: [{ type }] }),
  next: (seen) => seen + 1,
})

describe('no thread speaks for the world', () => {
  test('a thread that approves open gates itself', () => {
    const { property, steps } = planted(
      answering('gate.open', (event) =>
        event.type === 'gate.open'
          ? [{ type: 'approval.decision', id: event.id, allow: true, by: 'planted', plan: event.judgement.plan }]
          : [],
      ),
    )
    expect(property).toBe('P13')
    expect(steps.slice(-2)).toEqual([
      '5. gate.open a1, asked by approval; held back: act a1 by approval',
      '6. approval.decision a1 allow by planted for plan "plan-a1", asked by planted; held back: act a1 by approval',
    ])
  })

  test('a thread that reports a result in the place of the tool', () => {
    const { property, steps } = planted(
      answering('act', (event) =>
        event.type === 'act' ? [{ type: 'tool.done', id: event.id, outcome: { status: 'allowed', output: 'made up' } }] : [],
      ),
    )
    expect(property).toBe('P13')
    expect(steps.at(-1)).toBe('6. tool.done a1 allowed, asked by planted')
  })

  test('a thread that makes up a reply of the model', () => {
    const reply: RunEvent = { type: 'model.done', parts: [], proposals: [], usage: { inputTokens: 0, outputTokens: 0 }, model: 'planted' }
    const { property, steps } = planted(answering('think', () => [reply]))
    expect(property).toBe('P13')
    expect(steps.at(-1)).toBe('3. model.done with no call, asked by planted')
  })

  test('a thread that sends again what it took from outside: the very same event, by another sender', () => {
    const { property, steps } = planted(answering('clock', (event) => [event]))
    expect(property).toBe('P13')
    expect(steps.at(-1)).toContain('asked by planted')
  })
})

describe('a stop always gets through', () => {
  const refusing = (...block: Pattern<RunEvent>[]) => planted(always({ block }))

  test('a thread that blocks emergency stop and cancel for ever', () => {
    expect(refusing({ type: 'estop' }, { type: 'cancel' })).toEqual({
      ok: false,
      property: 'P14',
      steps: [],
      heldBack: ['cancel from outside by planted', 'estop from outside by planted'],
    })
  })

  test.each(['estop', 'cancel'] as const)('a thread that blocks %s alone, and only once a tool runs', (type) => {
    const { property, steps, heldBack } = planted({
      ...always({}),
      init: false,
      bid: (acting: boolean) => ({ wait: [{ type: 'act' }, { type: 'tool.done' }], block: acting ? [{ type }] : [] }),
      next: (_, event) => event.type === 'act',
    })
    expect(property).toBe('P14')
    expect(steps.at(-1)).toContain('act a1')
    expect(heldBack).toEqual([`${type} from outside by planted`])
  })

  test('a thread that blocks the emergency stop after a cancel, while a tool still runs', () => {
    const { property, steps, heldBack } = planted({
      ...always({}),
      init: false,
      bid: (cancelled: boolean) => ({ wait: [{ type: 'cancel' }], block: cancelled ? [{ type: 'estop' }] : [] }),
      next: () => true,
    })
    expect(property).toBe('P14')
    expect(steps.at(-1)).toContain('cancel')
    expect(heldBack).toContain('estop from outside by planted')
  })

  test('a thread that blocks every halt, and one that blocks those of the round limit only', () => {
    const every = refusing({ type: 'halt' })
    expect(every.property).toBe('P14')
    expect(every.heldBack?.join()).toMatch(/halt by planted/)
    const some = refusing({ type: 'halt', match: (event) => event.type === 'halt' && event.code === 'limit' })
    expect(some.property).toBe('P14')
    expect(some.heldBack?.join()).toMatch(/halt by planted/)
  })
})

describe('some run answers after more than one round of calls', () => {
  test('a thread that blocks the second observe: the shortest such run stalls, and it is said on whom', () => {
    const { ok, property, steps } = planted(blockingFrom('observe', 1))
    expect({ ok, property }).toEqual({ ok: false, property: 'P15' })
    expect(steps.find((step) => step.includes('stalled'))).toBe('13. stalled, asked by watchdog; held back: observe by planted')
  })

  test.each(['model.done', 'tool.done', 'approval.decision'] as const)('a thread that takes no second %s is named too', (type) => {
    const { property, heldBack } = planted(blockingFrom(type, 1))
    expect(property).toBe('P8')
    expect(heldBack?.join()).toMatch(new RegExp(`${type}.* from outside by planted$`))
  })
})
