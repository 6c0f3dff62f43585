import { expect, test } from 'bun:test'
import { FailureError } from '../../host/failure.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import { eventsOf } from './session.ts'

const done: AgentEvent = { type: 'done', stopReason: 'end_turn' }

test('`done` is shown when the agent is ready for the next turn, not before', async () => {
  const state = { isReady: false }
  async function* run(): AsyncGenerator<AgentEvent> {
    yield { type: 'iteration', count: 1 }
    yield done
    await Promise.resolve()
    state.isReady = true
  }
  const seen: [string, boolean][] = []
  for await (const { type } of eventsOf({ run })) seen.push([type, state.isReady])
  expect(seen).toEqual([
    ['iteration', false],
    ['done', true],
  ])
})

test('a turn that cannot begin is an error and an end, with the code of its failure', async () => {
  // biome-ignore lint/correctness/useYield: it fails before
  async function* run(): AsyncGenerator<AgentEvent> {
    throw new FailureError('integrity', 'the record was altered')
  }
  const codes: string[] = []
  const events = await Array.fromAsync(eventsOf({ run }, 'x', undefined, (code) => codes.push(code)))
  expect(events).toEqual([
    { type: 'error', code: 'integrity', message: 'the record was altered', recoverable: true },
    { type: 'done', stopReason: 'error' },
  ])
  expect(codes).toEqual(['integrity'])
})
