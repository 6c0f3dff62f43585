import { expect, test } from 'bun:test'
import type { AgentEvent } from '../../runtime/event.ts'
import { withActivity } from './run-turn.ts'

function watched() {
  const said: string[] = []
  const status = { begin: (what: string) => void said.push(what), end: () => void said.push('-') }
  const render = { show: ({ type }: AgentEvent) => void said.push(`(${type})`), end: () => void said.push('(end)') }
  return { said, active: withActivity(render, status) }
}

const use = (toolCallId: string, toolName: string): AgentEvent => ({ type: 'tool_use', toolCallId, toolName, input: {} })
const result = (toolCallId: string): AgentEvent => ({ type: 'tool_result', toolCallId, status: 'completed' })

test('the model thinks until tools run, and again when they all are done', () => {
  const { said, active } = watched()
  active.show({ type: 'init', runId: 'r', model: 'm' })
  active.show(use('a', 'shell'))
  active.show(use('b', 'http'))
  active.show(result('a'))
  active.show(result('b'))
  active.show({ type: 'text', content: 'x', isPartial: true })
  active.show({ type: 'done', stopReason: 'end_turn' })
  expect(said.join(' ')).toBe(
    '(init) thinking (tool_use) shell (tool_use) 2 tools (tool_result) http (tool_result) thinking (text) - (done)',
  )
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
