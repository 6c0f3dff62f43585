import { expect, test } from 'bun:test'
import { isDeep } from '../../../../test/support/tier.ts'
import { egress } from '../../behaviours/guards/egress.ts'
import type { RunEvent } from '../../event.ts'
import { sentence } from '../describe-trace.ts'
import { verifyProgram } from '../verify-program.ts'

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
