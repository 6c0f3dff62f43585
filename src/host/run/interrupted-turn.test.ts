import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  acting,
  callOf,
  createMemoryStage,
  type MemoryStage,
  recordSteps,
  refusing,
  replied,
  runOf,
  started,
} from '../../memory/fixture.ts'
import type { ExternalEvent, Proposal, ToolOutcome } from '../../runtime/event.ts'
import { interruptedTurn } from './interrupted-turn.ts'

let stage: MemoryStage
beforeEach(() => {
  stage = createMemoryStage()
})
afterEach(() => stage.remove())

const record = () => recordSteps({ memory: stage.memory, log: () => {}, now: () => stage.clock.now++, redact: (event) => event })
const unknown: ToolOutcome = { status: 'failed', output: '', error: 'interrupted: outcome unknown' }
const done: ToolOutcome = { status: 'allowed', output: 'done' }

/** A run that asked for these calls and ended so; a call without an outcome never began. */
function ran(number: number, calls: { readonly [id: string]: ToolOutcome | undefined }, start = started('go')): void {
  const { external, intent } = record()
  external(runOf(number), start)
  external(runOf(number), replied(Object.keys(calls).map((id) => ({ type: 'call' as const, ...callOf(id) }))))
  for (const [id, outcome] of Object.entries(calls)) {
    if (outcome === undefined) continue
    intent(runOf(number), acting(callOf(id)))
    external(runOf(number), { type: 'tool.done', id, outcome })
  }
}

function end(number: number, code = 'error', message = 'died', digest: string | null = null): void {
  stage.memory.journal.end(`run-${number}`, { at: 1, code, message, digest })
}

const look = (isIdempotent = false) =>
  interruptedTurn({ memory: stage.memory, conversationId: 'conversation-1', workspace: '/w', isIdempotent: async () => isIdempotent })

async function turn(isIdempotent = false) {
  const found = await look(isIdempotent)
  if (typeof found === 'string') throw new Error(found)
  return found
}

const idsOf = (proposals: readonly Proposal[]) => proposals.map(({ call }) => call.id)

describe('at the first step without a receipt', () => {
  test('what has a result keeps it, what never began is made, and what may have happened is nobody’s to repeat', async () => {
    ran(1, { a: done, b: unknown, c: undefined })
    end(1)
    const found = await turn()
    expect([found.calls, idsOf(found.unknown)]).toEqual([2, ['b']])
    const { prompt, continues } = found.continueWith(new Map())
    expect([continues.run, continues.asked, idsOf(continues.proposals)]).toEqual(['run-1', 'go', ['c']])
    expect(prompt).toContain('Nobody knows whether this call was done')
    expect(idsOf(found.continueWith(new Map([['b', 'again']])).continues.proposals)).toEqual(['b', 'c'])
    expect(found.continueWith(new Map([['b', 'again']])).prompt).toBe('')
  })

  test('a tool that may run twice does', async () => {
    ran(1, { b: unknown })
    end(1)
    const found = await turn(true)
    expect([found.unknown, idsOf(found.continueWith(new Map()).continues.proposals)]).toEqual([[], ['b']])
  })

  test('a call that only the end of the run refused is made; one that a rule refused is not', async () => {
    ran(1, { a: undefined, b: undefined })
    record().denied(runOf(1), { ...refusing(callOf('a')), by: 'cancel' })
    record().denied(runOf(1), refusing(callOf('b')))
    end(1, 'cancelled', 'cancelled by SIGTERM', 'd')
    expect(idsOf((await turn()).continueWith(new Map()).continues.proposals)).toEqual(['a'])
  })

  test('what the model was to be told is told again by the next run, and the first question stays', async () => {
    ran(1, { b: unknown })
    end(1)
    const { prompt, continues } = (await turn()).continueWith(new Map())
    record().external(runOf(2), { ...(started(prompt) as Extract<ExternalEvent, { type: 'run.start' }>), continues })
    end(2)
    const next = (await turn()).continueWith(new Map())
    expect([next.prompt, next.continues]).toEqual([prompt, { run: 'run-2', asked: 'go', proposals: [] }])
  })
})

test.each([
  ['answered', '', 'was answered'],
  ['denied', 'no', 'was answered after a refusal: no'],
  ['cancelled', 'cancelled by Ctrl-C', 'ended for good (cancelled): cancelled by Ctrl-C'],
  ['estop', 'stop', 'ended for good (estop)'],
])('a turn that ended as %s does not go on', async (code, message, says) => {
  ran(1, {})
  expect(await look()).toContain('is under way')
  end(1, code, message, 'd')
  expect(await look()).toContain(says)
})

test.each(['limit', 'budget', 'timeout', 'provider'])('a turn that ended as %s goes on, and nothing is said to have died', async (code) => {
  ran(1, { a: done })
  end(1, code, 'why', 'd')
  expect((await turn()).diedOf).toBeUndefined()
})
