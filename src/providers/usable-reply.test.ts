import { expect, test } from 'bun:test'
import type { Part } from '../runtime/event.ts'
import type { ChatResponse } from '../runtime/port.ts'
import { assertNoWrittenCall, assertUsable, maxCalls } from './usable-reply.ts'

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
    expect(assertUsable(good)).toMatchObject(good)
})

test('an answer also has its text and its calls by the names final_text and tool_calls', () => {
  const parts = [
    { type: 'thinking' as const, text: 'hm' },
    { type: 'text' as const, text: 'Hi ' },
    ...calls(1),
    { type: 'text' as const, text: 'there' },
  ]
  const { final_text, tool_calls } = assertUsable(response(parts))
  expect({ final_text, tool_calls }).toEqual({
    final_text: 'Hi there',
    tool_calls: [{ id: 'c0', name: 't', input: {}, malformed: undefined }],
  })
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

const saying = (text: string, ...more: readonly Part[]): ChatResponse => ({
  parts: [{ type: 'text', text }, ...more],
  stop: 'stop',
  usage: { inputTokens: 1, outputTokens: 1 },
  model: 'm',
  provider: 'far',
})

test.each([
  '<tool_call>\n{"name":"file_read","arguments":{"path":"a"}}\n</tool_call>',
  'I look. <tool_call>{"name":"file_read"}</tool_call>\n',
  ' <tool_call>{"name":"cut off',
  '<function=file_read><parameter=path>a</parameter></function>',
  '[TOOL_CALLS][{"name":"file_read"}]',
  '<|python_tag|>{"name":"file_read"}',
])('a call that is written as text is refused: %j', (text) => {
  expect(() => assertNoWrittenCall(saying(text))).toThrow('ask without tools: braidclaw -m far/m')
})

test.each([
  'Models write <tool_call>{"name":"x"}</tool_call> to call.',
  '```\n<tool_call>{"name":"x"}</tool_call>\n```',
  'The tag <tool_call> begins a call.',
  '{"name":"file_read"}',
])('an answer that speaks of calls is one: %j', (text) => {
  expect(() => assertNoWrittenCall(saying(text))).not.toThrow()
})

test('text beside a real call is never taken for one', () => {
  const call = { type: 'call', id: 'c', name: 't', input: {} } as const
  expect(() => assertNoWrittenCall(saying('<tool_call>{"name":"x"}</tool_call>', call))).not.toThrow()
})
