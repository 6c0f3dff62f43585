import { expect, test } from 'bun:test'
import type { Part } from '../runtime/event.ts'
import type { ChatResponse } from '../runtime/port.ts'
import { assertUsable, maxCalls } from './usable-reply.ts'

const response = (parts: readonly Part[], stop: ChatResponse['stop'] = 'stop'): ChatResponse => ({
  parts,
  stop,
  usage: { inputTokens: 1, outputTokens: 1 },
  model: 'm',
  provider: 'far',
})
const calls = (count: number) => Array.from({ length: count }, (_, n) => ({ type: 'call' as const, id: `c${n}`, name: 't', input: {} }))
const failing = (of: ChatResponse) => () => assertUsable(of)

test('a text, a call without a text, and a text that was cut at the limit are answers', () => {
  for (const good of [response([{ type: 'text', text: 'Hi' }]), response(calls(1)), response([{ type: 'text', text: 'Hi' }], 'length')])
    expect(assertUsable(good)).toBe(good)
})

test('as many calls as are taken are an answer, one more is none', () => {
  expect(assertUsable(response(calls(maxCalls))).parts).toHaveLength(maxCalls)
  expect(failing(response(calls(maxCalls + 1)))).toThrow(expect.objectContaining({ code: 'bad_response' }))
})

test('nothing, white space and thinking alone are empty; the message says what was there and what to do', () => {
  const thought = { type: 'thinking', text: 'hm' } as const
  expect(failing(response([]))).toThrow(expect.objectContaining({ code: 'empty', message: expect.stringMatching(/and no tool call$/) }))
  expect(failing(response([{ type: 'text', text: ' \n' }]))).toThrow(expect.objectContaining({ code: 'empty' }))
  expect(failing(response([thought]))).toThrow('only thinking')
  expect(failing(response([thought], 'length'))).toThrow('raise max_output_tokens')
})

test('what a content filter ended is refused, calls and all, with the words that came', () => {
  expect(failing(response([{ type: 'text', text: 'No.' }, ...calls(1)], 'content_filter'))).toThrow(
    expect.objectContaining({ code: 'refused', message: expect.stringMatching(/: No\.$/) }),
  )
})
