/** Tests what is specific to chat.completions and its many servers; the tests of http-provider.ts cover what all protocols share. */

import { describe, expect, test } from 'bun:test'
import { type Dialect, dialects } from '../../../test/support/dialects.ts'
import { outcomeOf, plain, providerAt, question, sends, serve, startFake } from '../../../test/support/vendor-fake.ts'
import type { FailureCode } from '../../runtime/event.ts'
import type { ChatRequest } from '../../runtime/port.ts'
import type { WireConfig } from '../wire/provider-settings.ts'
import { chatBody } from './converse.ts'

const dialect = dialects.find(({ kind }) => kind === 'openai-compatible')
if (dialect === undefined) throw new Error('no dialect')
const wire: Dialect = dialect

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const choice = (delta: unknown, finish: unknown = null) => data({ model: 'model-1', choices: [{ index: 0, delta, finish_reason: finish }] })
const stop = choice({}, 'stop')
const streams = (...events: readonly string[]) => serve(wire, () => sends(events))
const whole = (message: unknown, more = {}) =>
  serve(wire, plain(JSON.stringify({ choices: [{ message, finish_reason: 'stop', ...more }] }), 'application/json'))

const bad: readonly (readonly [string, string, FailureCode])[] = [
  ['no choices', data({ id: 'x' }), 'bad_response'],
  ['choices that are no list', data({ choices: {} }), 'bad_response'],
  ['a choice that is no object', data({ choices: ['x'] }), 'bad_response'],
  ['a delta that is no object', choice('hi'), 'bad_response'],
  ['content that is a number', choice({ content: 7 }), 'bad_response'],
  ['a content part that is no object', choice({ content: ['x'] }), 'bad_response'],
  ['reasoning that is an object', choice({ reasoning: {} }), 'bad_response'],
  ['tool calls that are no list', choice({ tool_calls: { index: 0 } }), 'bad_response'],
  ['a finish reason that is no string', choice({}, 7), 'bad_response'],
  ['an error for a finish reason', choice({}, 'error'), 'server'],
  ['an error in a choice', data({ choices: [{ error: { code: 429, message: 'slow down' } }] }), 'rate_limit'],
  ['an error in place of an event', data({ object: 'error', message: 'maximum context length is 8', code: 400 }), 'context_length'],
  ['an error that is a string', data({ error: 'Rate limit reached' }), 'rate_limit'],
  ['the last event cut off', stop.slice(0, -9), 'network'],
]

describe('a stream fails on', () => {
  test.each(bad)('%s, after what was said', async (_, event, code) => {
    const outcome = await streams(choice({ content: 'so far' }), event)
    expect([outcome.shown, outcome.code]).toEqual(['so far', code])
    expect(outcome.failure?.message).toContain('"far"')
  })
})

describe('a whole answer fails', () => {
  test.each([
    ['without a message', undefined, {}],
    ['with content of another kind', { content: 7 }, {}],
  ])('%s', async (_, message, more) => {
    expect((await whole(message, more)).code).toBe('bad_response')
  })

  test('when it says that it is too large to send', async () => {
    const { code } = await serve(wire, plain(wire.whole({ text: ['x'.repeat(1_001)] }), 'application/json'), { maxResponseBytes: 1_000 })
    expect(code).toBe('too_large')
  })
})

test('a refusal, and what a content filter cut off, is no answer; the reason is told', async () => {
  const refused = await streams(choice({ content: null, refusal: 'I will ' }), choice({ refusal: 'not.' }), stop)
  expect([refused.code, refused.failure?.message]).toEqual(['refused', expect.stringContaining(': I will not.')])
  expect((await whole({ content: null, refusal: 'No.' })).failure?.message).toEndWith(': No.')
  const filtered = await streams(choice({ content: 'Half' }, 'content_filter'))
  expect([filtered.code, filtered.failure?.message]).toEqual(['refused', expect.stringContaining('content filter): Half')])
  expect((await streams(choice({}, 'content_filter'))).failure?.message).toEndWith('gave no reason')
})

test.each([
  ['length', 'length'],
  ['function_call', 'tool_calls'],
  ['eos', 'other'],
  ['constructor', 'other'],
] as const)('the finish reason %s is %s', async (reason, expected) => {
  expect((await streams(choice({ content: 'a' }, reason))).response?.stop).toBe(expected)
})

test('thinking is told under either name, once, and takes turns with the text', async () => {
  const { response } = await streams(
    choice({ reasoning: 'a' }),
    choice({ reasoning_content: 'b', reasoning: 'b' }),
    choice({ reasoning_content: '', reasoning: 'c' }),
    choice({ content: 'd' }),
    choice({ reasoning: 'e' }),
    choice({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'f' }] }, { type: 'text', text: 'g' }, { type: 'image' }] }),
    stop,
  )
  expect(response?.parts).toMatchObject([
    { type: 'thinking', text: 'abc' },
    { type: 'text', text: 'd' },
    { type: 'thinking', text: 'ef' },
    { type: 'text', text: 'g' },
  ])
  expect((await whole({ reasoning: 'hm', content: 'so' })).response?.parts).toMatchObject([
    { type: 'thinking', text: 'hm' },
    { type: 'text', text: 'so' },
  ])
})

test('tokens may be counted with the end, after it, in every event, or next to no choices at all', async () => {
  const usage = (n: number) => ({ prompt_tokens: n, completion_tokens: 2, prompt_tokens_details: null })
  const last = data({ choices: null, usage: usage(7) })
  for (const events of [
    [data({ choices: [{ finish_reason: 'stop' }], usage: usage(7) })],
    [stop, last],
    [data({ choices: [], usage: usage(1) }), stop, last],
  ]) {
    expect((await streams(choice({ content: 'hi' }), ...events)).response?.usage).toEqual({ inputTokens: 7, outputTokens: 2 })
  }
  expect(
    (await streams(choice({ content: 'hi' }), stop, data({ choices: [], usage: { prompt_tokens: '7', completion_tokens: null } }))).response
      ?.usage.inputTokens,
  ).toBeGreaterThan(9)
})

test('an error that is null, a choice that is empty and an unknown field are nothing', async () => {
  const { shown, response } = await streams(
    data({ error: null, choices: [], prompt_filter_results: [] }),
    data({ choices: [{ index: 0, delta: null, logprobs: null }] }),
    choice({ role: 'assistant', content: 'hi', function_call: null, refusal: null, tool_calls: null }),
    stop,
  )
  expect([shown, response?.stop]).toEqual(['hi', 'stop'])
})

test('a last event without its blank line counts', async () => {
  expect((await streams(choice({ content: 'hi' }), stop.trimEnd())).response?.parts).toEqual([{ type: 'text', text: 'hi' }])
})

test('what comes after the last event does not count, and nobody waits for the end of the body', async () => {
  const late = choice({ content: 'never' })
  const outcome = await serve(wire, () => sends([choice({ content: 'hi' }) + stop, `data: [DONE]\n\n${late}`, late], 'hold'), {
    idleTimeoutS: 5,
  })
  expect([outcome.code, outcome.shown]).toEqual([undefined, 'hi'])
})

test('a connection whose body came to its end is used again', async () => {
  const ports = new Set<number | undefined>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, self) {
      ports.add(self.requestIP(request)?.port)
      // The end of the body comes some time after the last event.
      return sends(wire.events({ text: ['hi'] }), 'close', 5)
    },
  })
  const { provider } = providerAt(wire, { url: `http://127.0.0.1:${server.port}/v1` })
  for (let n = 0; n < 3; n++) await outcomeOf(provider.chat(question, new AbortController().signal))
  await server.stop(true)
  expect(ports.size).toBe(1)
})

test('without a key no authorization is sent', async () => {
  const fake = startFake(() => sends([stop]))
  await outcomeOf(providerAt(wire, fake, { config: { apiKey: undefined } }).provider.chat(question, new AbortController().signal))
  fake.stop()
  expect(fake.asked[0]?.headers.get('authorization')).toBeNull()
})

test('the calls of a whole answer are as many as it lists, whatever their ids, and it needs no finish reason', async () => {
  const call = { id: 'same', function: { name: 'time', arguments: '' } }
  const { response } = await whole({ content: null, tool_calls: [call, call] }, { finish_reason: null })
  expect(response).toMatchObject({ stop: 'other', parts: [{ id: 'same' }, { id: 'same-2' }] })
})

test('a whole answer comes along as it was', async () => {
  const { response } = await whole({ content: 'hi' }, { extra: 1 })
  expect(response?.rawProviderPayload).toEqual({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop', extra: 1 }] })
})

test('a long reply in few pieces is few chunks, and all of it is there', async () => {
  const words = Array.from({ length: 4_000 }, (_, n) => `wörd ${n}${n % 100 === 0 ? '"\n' : ' '}`)
  const fake = startFake(() => new Response(wire.events({ text: words }).join('')))
  let chunks = 0
  let shown = ''
  for await (const chunk of providerAt(wire, fake).provider.chat(question, new AbortController().signal)) {
    chunks++
    if (chunk.type === 'text') shown += chunk.text
  }
  fake.stop()
  expect(shown).toBe(words.join(''))
  expect(chunks).toBeLessThan(200)
})

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
