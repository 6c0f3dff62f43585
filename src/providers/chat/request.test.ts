/** Tests the request body byte for byte, because a changed byte costs every running conversation its cached prefix. */

import { expect, test } from 'bun:test'
import type { ChatRequest } from '../../runtime/port.ts'
import type { WireConfig } from '../wire/provider-settings.ts'
import { chatBody } from './request.ts'

const tool = (name: string) => ({ name, description: `The ${name}.`, parameters: { type: 'object', required: ['path'] } }) as const

const request: ChatRequest = {
  systemPrompt: 'Be brief.',
  messages: [{ role: 'user', content: 'What is in a.txt?' }],
  tools: [tool('read'), tool('list')],
  model: '',
  metadata: { hint: 'secret-hint' },
}

const config: WireConfig = { kind: 'openai-compatible', model: 'm' }

const messages = '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is in a.txt?"}]'
const spec = (name: string) =>
  `{"type":"function","function":{"name":"${name}","description":"The ${name}.","parameters":{"type":"object","required":["path"]}}}`
const tools = `"tools":[${spec('list')},${spec('read')}]`
const streaming = '"stream":true,"stream_options":{"include_usage":true}'

test('a plain question', () => {
  expect(chatBody(request, config)).toBe(`{"model":"m",${messages},${tools},${streaming}}`)
})

test('without a system prompt and without tools nothing is said of them', () => {
  expect(chatBody({ ...request, systemPrompt: '', tools: [] }, config)).toBe(
    `{"model":"m","messages":[{"role":"user","content":"What is in a.txt?"}],${streaming}}`,
  )
})

test('options come first; those of the request win', () => {
  const full: WireConfig = { ...config, maxOutputTokens: 9, temperature: 0.5, stream: false }
  expect(chatBody({ ...request, model: 'other', temperature: 0 }, full)).toBe(
    `{"model":"other","max_tokens":9,"temperature":0,${messages},${tools}}`,
  )
})

test('a conversation with everything in it', () => {
  const talked: ChatRequest = {
    ...request,
    systemPrompt: '',
    tools: [],
    messages: [
      {
        role: 'assistant',
        parts: [
          { type: 'thinking', text: 'hm ' },
          { type: 'text', text: 'Look. ' },
          { type: 'thinking', text: 'more' },
          { type: 'call', id: 'c1', name: 'read', input: { path: 'ä"\u2028', n: [1, null] } },
          { type: 'call', id: 'c2', name: 'x', input: {}, malformed: '{"a', meta: { compatible: { thoughtSignature: 'sig' } } },
          { type: 'text', text: 'after' },
        ],
      },
      { role: 'tool', callId: 'c1', name: 'read', content: 'hello', isError: false },
      { role: 'tool', callId: 'c2', name: 'x', content: 'bad', isError: true },
      { role: 'assistant', parts: [{ type: 'call', id: 'c3', name: 'x', input: {}, meta: { google: { thoughtSignature: 'g' } } }] },
      { role: 'tool', callId: 'c3', name: 'x', content: '', isError: false },
      { role: 'assistant', parts: [{ type: 'text', text: '' }] },
      { role: 'assistant', parts: [] },
      { role: 'assistant', parts: [{ type: 'thinking', text: 't' }] },
      { role: 'user', content: '' },
    ],
  }
  const expected = [
    '{"role":"assistant","content":"Look. after","reasoning_content":"hm more","tool_calls":[',
    '{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"ä\\\\\\"\u2028\\",\\"n\\":[1,null]}"}},',
    '{"id":"c2","type":"function","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]},',
    '{"role":"tool","tool_call_id":"c1","content":"hello"},{"role":"tool","tool_call_id":"c2","content":"bad"},',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"x","arguments":"{}"},',
    '"extra_content":{"google":{"thought_signature":"g"}}}]},{"role":"tool","tool_call_id":"c3","content":""},',
    '{"role":"assistant","content":""},{"role":"assistant","content":"","reasoning_content":"t"},{"role":"user","content":""}',
  ]
  expect(chatBody(talked, { ...config, stream: false })).toBe(`{"model":"m","messages":[${expected.join('')}]}`)
})
