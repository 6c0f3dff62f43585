/** Tests how real servers write and end a chat.completions stream, byte for byte: llama.cpp, Ollama, LM Studio, vLLM and gateways. */

import { describe, expect, test } from 'bun:test'
import { dialects } from '../../../test/support/dialects.ts'
import { chunk, done, type End, startRaw, streamed } from '../../../test/support/raw-server.ts'
import {
  ask,
  type Outcome,
  outcomeOf,
  providerAt,
  question,
  sends,
  startFake,
  testDeps,
  wireConfig,
} from '../../../test/support/vendor-fake.ts'
import { createWired } from '../http-provider.ts'

const wire = dialects.find(({ kind }) => kind === 'openai-compatible')
if (wire === undefined) throw new Error('no dialect')
const dialect = wire

const lines = (...events: readonly string[]) => events.map((event) => (event.endsWith('\n\n') ? event : `${event}\n\n`)).join('')
const spelled = (index: number, id: string, name: string, args: string) =>
  chunk({ role: 'assistant', content: '', tool_calls: [{ id, index, type: 'function', function: { name, arguments: args } }] })

/** The result of a request to a server that sends exactly these bytes. */
async function heard(body: string, end: End = 'chunked'): Promise<Outcome> {
  using server = startRaw([streamed(body, end)])
  return await outcomeOf(providerAt(dialect, server).provider.chat(question, new AbortController().signal))
}

async function textOf(body: string, end?: End): Promise<string> {
  const { shown, failure } = await heard(body, end)
  return failure === undefined ? shown : `${failure.code}: ${failure.message}`
}

describe('servers', () => {
  test('llama.cpp: comments while it reads the prompt, content that is null at first, the end said twice', async () => {
    const first = chunk({ role: 'assistant', content: null })
    const timings = 'data: {"choices":[],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","timings":{"prompt_n":1}}'
    expect(await textOf(lines(':', ':', first, chunk({ content: 'Hi' }), chunk({}, 'stop'), timings, done))).toBe('Hi')
  })

  test('llama.cpp: an error in the stream, as it was spelled and as it is now', async () => {
    const error = '{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}'
    for (const event of [`error: ${error}`, `data: {"error":${error}}`])
      expect((await heard(lines(chunk({ content: 'Half' }), event))).failure?.message).toContain('exceeds the available context size')
  })

  test('Ollama: calls whole in one chunk, parallel ones of the same index, ended by "stop" in older versions', async () => {
    const calls = [spelled(0, 'call_a', 'file_list', '{"path":"a"}'), spelled(0, 'call_b', 'file_list', '{"path":"b"}')]
    for (const finish of ['tool_calls', 'stop']) {
      const { response } = await heard(lines(...calls, chunk({ role: 'assistant', content: '' }, finish), done))
      expect(response?.parts).toMatchObject([{ input: { path: 'a' } }, { input: { path: 'b' } }])
    }
  })

  test('LM Studio: a named error event', async () => {
    const error = 'event: error\ndata: {"error":{"message":"The model has crashed"}}'
    expect(await textOf(lines(chunk({ content: 'Half' }), error))).toContain('The model has crashed')
    expect(await textOf(lines('event: error\ndata: out of memory'))).toContain('reported an error: out of memory')
  })

  test('vLLM: no finish_reason key until the last chunk, an error followed by the last event', async () => {
    const bare = 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null}]}'
    const end = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","stop_reason":null}]}'
    expect(await textOf(lines(bare, end, done))).toBe('Hi')
    const error = 'data: {"error":{"object":"error","message":"EngineCore died","type":"InternalServerError","param":null,"code":500}}'
    expect((await heard(lines(bare, error, done))).code).toBe('server')
  })

  test('gateways: keep-alives of every kind say nothing and end nothing', async () => {
    const keepAlives = [
      ': OPENROUTER PROCESSING',
      ': ping',
      'data: {}',
      'data:',
      'event: ping\ndata: {"type": "ping"}',
      'event: ping\ndata: now',
      'event: keepalive\ndata: null',
      'data: {"type":"ping"}',
      'event: ping',
      'retry: 3000',
    ]
    const words = ['Hel', 'lo, ', 'world']
    const body = words.flatMap((word) => [...keepAlives, chunk({ content: word })])
    expect(await textOf(lines(...body, ...keepAlives, chunk({}, 'stop'), ...keepAlives, done))).toBe('Hello, world')
    expect(await textOf(lines(...keepAlives, done))).toStartWith('empty: ')
    expect(await textOf(lines(...keepAlives))).toStartWith('network: ')
  })
})

describe('an end without finish_reason, where the server never sends that member,', () => {
  const bare = (event: string) => event.replace(',"finish_reason":null', '')
  const half = bare(chunk({ content: 'Hello' }))
  const call = (...args: Parameters<typeof spelled>) => bare(spelled(...args))

  test('is one when the last event says so, however the body ends', async () => {
    for (const end of ['chunked', 'length', 'close', 'cut'] as const) expect(await textOf(lines(half, done), end)).toBe('Hello')
    for (const last of ['data:[DONE]', 'data: [DONE] ']) expect(await textOf(lines(half, last))).toBe('Hello')
    expect(await textOf(`${lines(half)}data: [DONE]`)).toBe('Hello')
    expect((await heard(lines(call(0, 'a', 'time', '{}'), done))).response?.stop).toBe('tool_calls')
  })

  test('is one when the body came to its own end', async () => {
    for (const end of ['chunked', 'length'] as const) {
      expect(await textOf(lines(half), end)).toBe('Hello')
      expect(await textOf(lines(half).trimEnd(), end)).toBe('Hello')
      const { response } = await heard(lines(half, call(0, 'a', 'time', '{"zone":"UTC"}')), end)
      expect(response).toMatchObject({ stop: 'tool_calls', parts: [{ text: 'Hello' }, { input: { zone: 'UTC' } }] })
    }
  })

  test.each<[string, string, End]>([
    ['the connection broke', lines(half), 'cut'],
    ['only the closed connection ends the body', lines(half), 'close'],
    ['the last event is cut', `${lines(half)}data: {"choices":[{"index":0,"delta":{"cont`, 'chunked'],
    ['a call is not finished', lines(call(0, 'a', 'time', '{"zone":"Eur')), 'chunked'],
    ['a call has no arguments yet', lines(call(0, 'a', 'time', '')), 'chunked'],
    ['nothing was said', lines(bare(chunk({ role: 'assistant', content: '' }))), 'chunked'],
  ])('is none when %s', async (_, body, end) => {
    const { code, response } = await heard(body, end)
    expect([code, response]).toEqual(['network', undefined])
  })

  test('is none when an event came that nobody knows', async () => {
    expect(await textOf(lines(half, 'data: {"detail":"model crashed"}'))).toContain('{"detail":"model crashed"}')
    expect(await textOf(lines(half, 'data: {"detail":"loading"}', chunk({}, 'stop')))).toBe('Hello')
  })
})

describe('an end without finish_reason, where the server sends that member as null,', () => {
  const half = chunk({ content: 'Hello' })
  const many = Array.from({ length: 40 }, (_, n) => chunk({ content: `word ${n} ` }))

  test.each<[string, string, End]>([
    ['the body is properly closed', lines(half), 'chunked'],
    ['it is as long as it says', lines(half), 'length'],
    ['[DONE] comes', lines(half, done), 'chunked'],
    ['[DONE] comes after counts', lines(half, 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}', done), 'chunked'],
    ['the reply is long', lines(...many, done), 'chunked'],
    ['a call is cut', lines(half, spelled(0, 'a', 'time', '{"zone":"Eur')), 'chunked'],
    ['a call is whole', lines(half, spelled(0, 'a', 'time', '{"zone":"UTC"}')), 'chunked'],
    ['a call has no arguments yet', lines(half, spelled(0, 'a', 'time', ''), done), 'chunked'],
    ['a call is whole and [DONE] comes', lines(half, spelled(0, 'a', 'time', '{}'), done), 'chunked'],
  ])('is a part of an answer when %s', async (_, body, end) => {
    const { code, response, shown } = await heard(body, end)
    expect([code, response, shown !== '']).toEqual(['bad_response', undefined, true])
  })

  test('is asked again like a cut stream, but not after something was shown', async () => {
    const silent = chunk({ role: 'assistant', content: '' })
    const whole = lines(chunk({ content: 'Hello' }, 'stop'), done)
    using server = startRaw([streamed(lines(silent, done), 'chunked'), streamed(lines(half), 'chunked'), streamed(whole, 'chunked')])
    const { provider } = providerAt(dialect, server, { config: { maxRetries: 2 } })
    const asked = () => outcomeOf(provider.chat(question, new AbortController().signal))
    expect(await asked()).toMatchObject({
      shown: 'Hello',
      code: 'bad_response',
      failure: { message: expect.stringContaining('(after 2 attempts)') },
    })
    expect((await asked()).response?.parts).toEqual([{ type: 'text', text: 'Hello' }])
    expect(server.asked).toHaveLength(3)
  })

  test('does not spoil a reply whose last event names a reason', async () => {
    expect(await textOf(lines(half, chunk({}, 'stop')))).toBe('Hello')
  })
})

test('a call that the output limit may have cut before its first argument is not read as a call without arguments', async () => {
  const cut = await heard(lines(spelled(0, 'a', 'time', ''), chunk({}, 'length'), done))
  expect(cut.response?.parts).toMatchObject([{ name: 'time', input: {}, malformed: '' }])
  const { response } = await heard(lines(spelled(0, 'a', 'time', ''), chunk({}, 'tool_calls'), done))
  expect(response?.parts).toEqual([{ type: 'call', id: 'a', name: 'time', input: {} }])
})

test('tokens of the cache are counted under the names of each server, as a part of prompt_tokens', async () => {
  const usages: readonly [object, object][] = [
    [{ prompt_tokens_details: { cached_tokens: 60 } }, { cachedInputTokens: 60 }],
    [{ prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 }, { cachedInputTokens: 60 }],
    [
      { cache_read_input_tokens: 60, cache_creation_input_tokens: 30 },
      { cachedInputTokens: 60, cacheWriteTokens: 30 },
    ],
    [{ prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } }, { cachedInputTokens: 60, cacheWriteTokens: 30 }],
    [{ cached_tokens: 60 }, { cachedInputTokens: 60 }],
    [{ prompt_tokens_details: { cached_tokens: 60 }, prompt_cache_hit_tokens: 1 }, { cachedInputTokens: 60 }],
    [{ prompt_cache_hit_tokens: 600, cache_creation_input_tokens: 5 }, { cachedInputTokens: 100 }],
    [{ prompt_cache_hit_tokens: 'many' }, {}],
  ]
  for (const [told, counted] of usages) {
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, ...told } })}`
    const { response } = await heard(lines(chunk({ content: 'Hi' }), chunk({}, 'stop'), usage, done))
    expect(response?.usage).toEqual({ inputTokens: 100, outputTokens: 20, ...counted })
  }
})

describe('a call that cannot be read', () => {
  const calledWith = async (...calls: readonly unknown[]) => {
    const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: 'tool_calls' }] })}`
    return (await heard(lines(event, done))).response?.parts
  }

  test('is handed on beside the ones that can', async () => {
    const good = { index: 0, id: 'a', function: { name: 'time', arguments: '{}' } }
    expect(await calledWith(good, 'file_list', { index: 2, id: 'c', function: { name: '', arguments: '{"path":"."}' } })).toEqual([
      { type: 'call', id: 'a', name: 'time', input: {} },
      { type: 'call', id: 'call', name: '', input: {}, malformed: '"file_list"' },
      { type: 'call', id: 'c', name: '', input: { path: '.' } },
    ])
  })

  test('the older function_call is read like any other', async () => {
    const pieces = [{ name: 'time', arguments: '' }, { arguments: '{"zone":' }, { arguments: '"UTC"}' }]
    const body = lines(...pieces.map((function_call) => chunk({ function_call })), chunk({}, 'function_call'), done)
    expect((await heard(body)).response).toMatchObject({ stop: 'tool_calls', parts: [{ name: 'time', input: { zone: 'UTC' } }] })
  })
})

describe('a member that a server refuses', () => {
  const refused = (message: string) => new Response(JSON.stringify({ error: { message } }), { status: 400 })
  const max = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

  test('is left out or renamed in a second try, and in all later requests', async () => {
    const [chat] = dialects
    const fake = startFake(({ text }) => {
      const body = JSON.parse(text)
      if (body.max_tokens !== undefined) return refused(max)
      if (body.stream_options !== undefined) return refused('Extra inputs are not permitted: stream_options')
      return sends(chat?.events({ text: ['Hi.'] }) ?? [])
    })
    const provider = createWired({
      name: 'far',
      config: wireConfig('openai-compatible', fake.url, { maxOutputTokens: 77 }),
      deps: testDeps(),
    })
    for (const asked of [3, 4]) {
      expect((await ask(provider)).parts).toEqual([{ type: 'text', text: 'Hi.' }])
      expect(fake.asked.length).toBe(asked)
    }
    fake.stop()
    expect(JSON.parse(fake.asked[3]?.text ?? '')).toMatchObject({ max_completion_tokens: 77, stream: true })
  })

  test('is tried once: a server that refuses everything is an error', async () => {
    const fake = startFake(() => refused(max))
    const provider = createWired({ name: 'far', config: wireConfig('openai-compatible', fake.url), deps: testDeps() })
    await expect(ask(provider)).rejects.toThrow('max_completion_tokens')
    fake.stop()
    expect(fake.asked.length).toBe(2)
  })
})

describe('thinking between tags at the beginning of the text', () => {
  const parts = (...pairs: readonly (readonly [string, string])[]) => pairs.map(([type, text]) => expect.objectContaining({ type, text }))
  const said = (text: string) => parts(['text', text])
  test.each([
    ['is thinking', '<think>\nHm.\n</think>\n\nHi.', parts(['thinking', '\nHm.\n'], ['text', 'Hi.'])],
    ['with the longer tag, after white space', '\n <thinking>Hm.</thinking>Hi.', parts(['thinking', 'Hm.'], ['text', 'Hi.'])],
    ['that is empty is nothing', '<think>\n\n</think>\n\nHi.', parts(['thinking', '\n\n'], ['text', 'Hi.'])],
    ['twice', '<think>A</think>\n<think>B</think>Hi.', parts(['thinking', 'AB'], ['text', 'Hi.'])],
    ['with what looks like its end', '<think>a </thin b</think>Hi.', parts(['thinking', 'a </thin b'], ['text', 'Hi.'])],
    ['in the middle is text', 'Write <think>x</think>.', said('Write <think>x</think>.')],
    ['in a fence is text', '```\n<think>x</think>\n```', said('```\n<think>x</think>\n```')],
    ['after the thinking is text', '<think>a</think>Use <think>b</think>', parts(['thinking', 'a'], ['text', 'Use <think>b</think>'])],
    ['of another name is text', '<thinker>x', said('<thinker>x')],
    ['that only begins is text', ' <thi', said(' <thi')],
  ])('%s, however the pieces are cut', async (_, text, result) => {
    for (const size of [1, 3, 7, 1_000]) {
      const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
      const { response, shown } = await heard(lines(...pieces.map((content) => chunk({ content })), chunk({}, 'stop'), done))
      expect(response?.parts).toEqual(result)
      expect(shown).toBe(response?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('') ?? '')
    }
  })

  test('that never ends is no answer', async () => {
    expect(await textOf(lines(chunk({ content: '<think>Hm' }), chunk({}, 'stop'), done))).toMatch(/^empty: .*only thinking/)
  })
})
