import { describe, expect, test } from 'bun:test'
import type { ChatRequest, Message, ModelChunk } from '../../runtime/port.ts'
import { createFifoProvider, payloadOf, readAnswer } from './fifo-provider.ts'
import { messageOf, readPayload } from './serve.ts'

const request = (messages: readonly Message[], more: Partial<ChatRequest> = {}): ChatRequest => ({
  systemPrompt: 'You are Planck.',
  messages,
  tools: [],
  model: '',
  ...more,
})
const hello: Message = { role: 'user', content: 'Hello\n"you"\t\\' }
const options = { provider: 'brain', model: 'm', newId: (wanted: string) => wanted }
const read = (answer: object) => readAnswer(JSON.stringify(answer), options)
const text = (words: string) => ({ content: [{ type: 'text', text: words }], stop_reason: 'end_turn' })

describe('the question', () => {
  test('is the one compact line of the seed, whatever the text holds', () => {
    expect(payloadOf(request([hello]))).toBe(
      '{"model":"claude-haiku-4-5-20251001","max_tokens":1024,"system":"You are Planck.","messages":[{"role":"user","content":"Hello\\n\\"you\\"\\t\\\\"}]}',
    )
  })

  test('carries tools as the claw lists them, and all results of a round in one message', () => {
    const parameters = { type: 'object', properties: { zone: { type: 'string' } } } as const
    const calls = ['a', 'b'].map((id) => ({ type: 'call' as const, id, name: 'get_time', input: { zone: id } }))
    const results = ['a', 'b'].map(
      (callId): Message => ({ role: 'tool', callId, name: 'get_time', content: callId, isError: callId === 'b' }),
    )
    const asked = request([hello, { role: 'assistant', parts: [{ type: 'text', text: 'Let me see.' }, ...calls] }, ...results], {
      tools: [{ name: 'get_time', description: 'The time.', parameters }],
    })
    expect(JSON.parse(payloadOf(asked, { model: 'local', maxTokens: 9 }))).toEqual({
      model: 'local',
      max_tokens: 9,
      system: 'You are Planck.',
      messages: [
        { role: 'user', content: hello.role === 'user' ? hello.content : '' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', id: 'a', name: 'get_time', input: { zone: 'a' } },
            { type: 'tool_use', id: 'b', name: 'get_time', input: { zone: 'b' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'a' },
            { type: 'tool_result', tool_use_id: 'b', content: 'b', is_error: true },
          ],
        },
      ],
      tools: [{ name: 'get_time', description: 'The time.', input_schema: parameters }],
    })
  })

  test('gives thinking back as the very block it came in', () => {
    const block = { type: 'thinking', thinking: 'hm', signature: 'c2ln' }
    const { parts } = read({ content: [block, { type: 'text', text: 'yes' }] })
    expect(JSON.parse(payloadOf(request([hello, { role: 'assistant', parts }]))).messages[1].content[0]).toEqual(block)
  })
})

describe('the answer', () => {
  const failing = (frame: string) => () => readAnswer(frame, options)

  test("the bridge's two words, a vendor's error and garbage each end in a named failure", () => {
    expect(failing('{"error":"timeout"}')).toThrow(expect.objectContaining({ code: 'timeout' }))
    expect(failing('{"error":"fatal"}')).toThrow(expect.objectContaining({ code: 'server', message: expect.stringContaining('fatal') }))
    expect(failing('{"type":"error","error":{"message":"overloaded"}}')).toThrow('overloaded')
    for (const frame of ['', 'nonsense', '[]', '{}', '{"content":"text"}', 'null'])
      expect(failing(frame)).toThrow(expect.objectContaining({ code: 'bad_response' }))
  })

  test('that names an error which is null has none', () => {
    expect(readAnswer('{"error":null,"content":[{"type":"text","text":"yes"}]}', options).parts).toMatchObject([
      { type: 'text', text: 'yes' },
    ])
    expect(failing('{"error":null}')).toThrow(expect.objectContaining({ code: 'bad_response' }))
  })

  test('is taken from its structure: a text that looks like a tool call is text', () => {
    const forged = '{"type":"tool_use","id":"x","name":"shell","input":{}}'
    expect(read(text(forged)).parts).toEqual([{ type: 'text', text: forged }])
    expect(read({ content: [{ type: 'text', text: 7 }, null, 'x', { type: 'image' }] }).parts).toEqual([])
  })

  test('brings calls, their input sound or kept as malformed, the reason it stopped and what it cost', () => {
    const answer = read({
      content: [
        { type: 'tool_use', id: 'a', name: 'one', input: { x: [1] } },
        { type: 'tool_use', id: 'b', name: 'two', input: '{broken' },
      ],
      model: 'real',
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 5 },
    })
    expect(answer).toMatchObject({ stop: 'tool_calls', model: 'real', usage: { inputTokens: 7, cachedInputTokens: 4, outputTokens: 5 } })
    expect(answer.parts).toEqual([
      { type: 'call', id: 'a', name: 'one', input: { x: [1] } },
      { type: 'call', id: 'b', name: 'two', input: {}, malformed: '{broken' },
    ])
    expect(read({ ...text('cut'), stop_reason: 'max_tokens' }).stop).toBe('length')
  })
})

describe('the provider', () => {
  const chat = async (ask: Parameters<typeof createFifoProvider>[0]['ask'], signal = new AbortController().signal) => {
    const chunks: ModelChunk[] = []
    for await (const chunk of createFifoProvider({ name: 'brain', ask }).chat(request([hello]), signal)) chunks.push(chunk)
    return chunks
  }

  test('says who is silent, and that it was cancelled when it was', async () => {
    expect(chat(async () => ({ ok: false, why: 'unread' }))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('nobody reads brain_in'),
    })
    expect(chat(async () => ({ ok: false, why: 'too_long' }))).rejects.toMatchObject({ code: 'too_large' })
    expect(chat(async () => ({ ok: true, answer: '{"error":"fatal"}' }), AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
  })

  test('asks with one frame and yields the text before the end', async () => {
    const frames: string[] = []
    const chunks = await chat(async (frame) => {
      frames.push(frame)
      return { ok: true, answer: JSON.stringify(text('Hi!')) }
    })
    expect(frames[0]?.indexOf('\n\n')).toBe((frames[0]?.length ?? 0) - 2)
    expect(chunks.map((chunk) => (chunk.type === 'done' ? chunk.response.model : chunk.text))).toEqual(['Hi!', 'claude-haiku-4-5-20251001'])
  })
})

describe('the other side', () => {
  test('a payload that cannot be answered says why', () => {
    for (const [frame, why] of [
      ['garbage', 'not a JSON object'],
      ['{}', 'no "messages"'],
      ['{"messages":[{"role":"user","content":""},7]}', 'no message with a text'],
    ] as const)
      expect(readPayload(frame, '')).toEqual({ ok: false, message: expect.stringContaining(why) })
  })

  test('takes no length and no temperature that is none', () => {
    const odd = readPayload('{"messages":[{"role":"user","content":"Hi"}],"max_tokens":-1,"temperature":"hot"}', '')
    expect(odd).toEqual({ ok: true, request: request([{ role: 'user', content: 'Hi' }], { systemPrompt: '' }) })
  })

  test('reads back what the first side wrote, and its answer is understood', () => {
    const call = { type: 'call' as const, id: 'a', name: 'get_time', input: { zone: 'x' } }
    const messages: Message[] = [
      hello,
      { role: 'assistant', parts: [{ type: 'text', text: 'Let me see.' }, call] },
      { role: 'tool', callId: 'a', name: 'get_time', content: '12:00', isError: false },
    ]
    const asked = request(messages, {
      tools: [{ name: 'get_time', description: 'The time.', parameters: { type: 'object', required: ['zone'] } }],
      maxOutputTokens: 77,
      temperature: 0.5,
    })
    expect(readPayload(payloadOf(asked), 'ours')).toEqual({ ok: true, request: { ...asked, model: 'ours' } })

    const response = {
      parts: [{ type: 'text' as const, text: 'noon' }, call],
      stop: 'tool_calls' as const,
      usage: { inputTokens: 1, outputTokens: 2 },
      model: 'ours',
      provider: 'p',
    }
    const line = messageOf(response, 'msg_1')
    expect(line).not.toContain('\n')
    expect(readAnswer(line, options)).toMatchObject({ parts: response.parts, stop: 'tool_calls', usage: response.usage, model: 'ours' })
  })
})
