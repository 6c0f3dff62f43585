import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDeps } from '../../../test/support/vendor-fake.ts'
import { type ChatRequest, type ChatResponse, type Message, type Provider, ProviderFailure } from '../../runtime/port.ts'
import { createProvider } from '../create-provider.ts'
import { parseFixture } from './mock-fixture.ts'

const request = (messages: readonly Message[] = [{ role: 'user', content: 'hi' }]): ChatRequest => ({
  systemPrompt: '',
  messages,
  tools: [],
  model: '',
})

async function withFixture<T>(responses: readonly unknown[], use: (provider: Provider) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-mock-'))
  try {
    writeFileSync(join(folder, 'f.json'), JSON.stringify({ responses }))
    return await use(
      await createProvider(
        { name: 'm', kind: 'mock', model: 'mock', fixture: 'f.json', totalTimeoutS: 0.2 },
        createDeps({ baseDir: folder }),
      ),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function ask(
  provider: Provider,
  messages?: readonly Message[],
): Promise<{ readonly chunks: string[]; readonly response: ChatResponse }> {
  const chunks: string[] = []
  for await (const chunk of provider.chat(request(messages), new AbortController().signal)) {
    if (chunk.type === 'done') return { chunks, response: chunk.response }
    chunks.push(chunk.text)
  }
  throw new Error('no done')
}

async function codeOf(provider: Provider, signal = new AbortController().signal): Promise<string> {
  try {
    for await (const _ of provider.chat(request(), signal));
  } catch (error) {
    return error instanceof ProviderFailure ? error.code : String(error)
  }
  return 'done'
}

describe('a fixture with a fault is refused with the file and the place', () => {
  const faults: readonly (readonly [string, string])[] = [
    ['{"responses":[', 'the file is not JSON'],
    ['[]', 'the file must be an object'],
    ['{}', 'responses must be a list of at least one reply, is missing'],
    ['{"responses":[]}', 'responses must be a list of at least one reply, is []'],
    ['{"responses":[{"text":"a"},"b"]}', 'responses[1] must be an object, is "b"'],
    ['{"responses":[{"txt":"a"}]}', 'responses[0] has an unknown key "txt"; known: text, '],
    ['{"responses":[{"text":5}]}', 'responses[0].text must be a string, is 5'],
    ['{"responses":[{"tool_calls":{}}]}', 'responses[0].tool_calls must be a list, is {}'],
    ['{"responses":[{"tool_calls":[{"arguments":{}}]}]}', 'responses[0].tool_calls[0].name must be a string, is missing'],
    ['{"responses":[{"tool_calls":[{"name":"a","args":{}}]}]}', 'responses[0].tool_calls[0] has an unknown key "args"'],
    ['{"responses":[{"delay_ms":-1}]}', 'responses[0].delay_ms must be a whole number ≥ 0, is -1'],
    ['{"responses":[{"usage":{"input_tokens":"x"}}]}', 'responses[0].usage.input_tokens must be a whole number'],
    ['{"responses":[{"error":"boom"}]}', 'responses[0].error must be one of auth, '],
    ['{"responses":[{"error":"constructor"}]}', 'responses[0].error must be one of auth, '],
    ['{"responses":[{}],"more":1}', 'the file has an unknown key "more"'],
  ]
  test.each(faults)('%s', (text, message) => {
    expect(() => parseFixture(text, '/x/f.json')).toThrow(`mock fixture "/x/f.json": ${message}`)
  })
})

test('one response a call, the last again and again', async () => {
  await withFixture([{ text: 'one' }, { text: 'two' }], async (provider) => {
    const said = [await ask(provider), await ask(provider), await ask(provider)].map(({ response }) => response.parts)
    expect(said).toEqual(['one', 'two', 'two'].map((text) => [{ type: 'text', text }]))
  })
})

test('thinking, text and calls may come together; arguments may be broken; ids are unique in the conversation', async () => {
  const call = (args: unknown) => ({ name: 'file_list', arguments: args })
  await withFixture([{ thinking: 'hm', text: 'look', tool_calls: [call({ path: '.' }), call('{"path"')] }], async (provider) => {
    const earlier: Message = { role: 'tool', callId: 'call_1', name: 'time', content: '', isError: false }
    const { response } = await ask(provider, [earlier])
    expect(response).toMatchObject({ stop: 'tool_calls', provider: 'm', model: 'mock' })
    expect(response.parts).toEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'look' },
      { type: 'call', id: 'call_1-2', name: 'file_list', input: { path: '.' } },
      { type: 'call', id: 'call_1-3', name: 'file_list', input: {}, malformed: '{"path"' },
    ])
  })
})

test('what was last said and found is put in as it is', async () => {
  await withFixture([{ text: '{{last_user_message}} → {{last_tool_result}}!' }, { text: '[{{last_tool_result}}]' }], async (provider) => {
    const tool: Message = { role: 'tool', callId: 'c', name: 't', content: "a.txt $& $' {{last_user_message}}", isError: false }
    const { chunks } = await ask(provider, [{ role: 'user', content: 'old' }, { role: 'user', content: 'list' }, tool])
    expect(chunks.join('')).toBe("list → a.txt $& $' {{last_user_message}}!")
    expect((await ask(provider)).chunks).toEqual(['[]'])
  })
})

test('text comes in as many pieces as asked for, cut between characters', async () => {
  await withFixture(
    [
      { text: 'ab🙂de', chunks: 3 },
      { text: 'ab', chunks: 9 },
      { text: '', chunks: 2 },
    ],
    async (provider) => {
      expect((await ask(provider)).chunks).toEqual(['ab', '🙂d', 'e'])
      expect((await ask(provider)).chunks).toEqual(['a', 'b'])
      expect(ask(provider)).rejects.toMatchObject({ code: 'empty' })
    },
  )
})

test('usage is what the fixture says, or counted the same way each time', async () => {
  await withFixture(
    [{ text: 'a', usage: { input_tokens: 7, output_tokens: 3, cached_input_tokens: 2 } }, { text: 'b' }],
    async (provider) => {
      expect((await ask(provider)).response.usage).toEqual({ inputTokens: 7, outputTokens: 3, cachedInputTokens: 2 })
      expect((await ask(provider)).response.usage).toEqual((await ask(provider)).response.usage)
    },
  )
})

test('errors have the codes of real ones, in several spellings', async () => {
  await withFixture(
    [{ error: 'timeout' }, { error: 'rate limit' }, { error: 'Connection-Refused' }, { error: 'context_length' }],
    async (provider) => {
      expect([await codeOf(provider), await codeOf(provider), await codeOf(provider), await codeOf(provider)]).toEqual([
        'timeout',
        'rate_limit',
        'network',
        'context_length',
      ])
    },
  )
})

test('a delay is waited for, ends with a cancel, and is bounded by the total time', async () => {
  await withFixture([{ delay_ms: 1, text: 'late' }, { delay_ms: 60_000 }], async (provider) => {
    expect((await ask(provider)).chunks).toEqual(['late'])
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 5)
    expect(await codeOf(provider, abort.signal)).toBe('aborted')
    expect(await codeOf(provider)).toBe('timeout')
  })
})
