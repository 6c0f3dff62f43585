import { afterEach, expect, jest, test } from 'bun:test'
import type { AgentEvent } from '../../runtime/event.ts'
import { withActivity } from './run-turn.ts'

afterEach(() => void jest.useRealTimers())

function watched() {
  const said: string[] = []
  const begins = new Set<number | undefined>()
  const begin = (what: string, _: unknown, since?: number) => void [said.push(what), begins.add(since)]
  const status = { begin, end: () => void said.push('-') }
  const render = { show: ({ type }: AgentEvent) => void said.push(`(${type})`), end: () => void said.push('(end)') }
  return { said, begins, active: withActivity(render, status) }
}

const use = (toolCallId: string, toolName: string): AgentEvent => ({ type: 'tool_use', toolCallId, toolName, input: {} })
const result = (toolCallId: string): AgentEvent => ({ type: 'tool_result', toolCallId, status: 'completed' })

test('the model thinks until tools run, and again when they all are done; the time is that of the turn', () => {
  jest.useFakeTimers()
  const { said, begins, active } = watched()
  active.show({ type: 'init', runId: 'r', model: 'm' })
  active.show(use('a', 'shell'))
  active.show(use('b', 'http'))
  jest.advanceTimersByTime(5000)
  active.show(result('a'))
  active.show(result('b'))
  active.show({ type: 'text', content: 'x', isPartial: true })
  active.show({ type: 'done', stopReason: 'end_turn' })
  expect(said.join(' ')).toBe(
    '(init) thinking (tool_use) shell (tool_use) 2 tools (tool_result) http (tool_result) thinking (text) - (done)',
  )
  expect([...begins]).toEqual([expect.any(Number)])
})

test('a question takes it away for as long as it waits, also when it fails', async () => {
  const { said, active } = watched()
  active.show(use('a', 'shell'))
  expect(await active.paused(Promise.resolve('yes'))).toBe('yes')
  await active.paused(Promise.reject(new Error('gone'))).catch(() => {})
  expect(said.slice(2)).toEqual(['-', 'shell', '-', 'shell'])
})

test('the end of the turn is the end of it', () => {
  const { said, active } = watched()
  active.end({
    ending: { stop: 'end_turn', code: 'answered', message: '' },
    exitCode: 0,
    context: undefined,
    usage: undefined,
    model: 'a/b',
    durationMs: 1,
    proof: [],
    runId: 'r',
    conversationId: 'c',
  })
  expect(said).toEqual(['-', '(end)'])
})
