/** Tests the request and the answer of each protocol: the stable prefix, returned signatures, keys and prices. */

import { describe, expect, test } from 'bun:test'
import { type Dialect, dialects, type Speech } from '../../test/support/dialects.ts'
import { ask, outcomeOf, providerAt, question, sends, startFake, testDeps } from '../../test/support/vendor-fake.ts'
import type { JsonObject } from '../kit/json.ts'
import type { ChatRequest, ChatResponse, Message } from '../runtime/port.ts'
import { createWired } from './http-provider.ts'
import type { WireConfig } from './wire/provider-settings.ts'

/** Builds the next request: the question, the parts of the response, and a result for each call. */
function afterwards(response: ChatResponse): ChatRequest {
  const results = response.parts.flatMap((part): Message[] =>
    part.type === 'call' ? [{ role: 'tool', callId: part.id, name: part.name, content: 'hello', isError: false }] : [],
  )
  return { ...question, messages: [...question.messages, { role: 'assistant', parts: response.parts }, ...results] }
}

const speech: Speech = {
  thinking: { text: ['I should ', 'read it.'], signature: 'c2lnbmF0dXJl+/=' },
  text: ['Let me look. '],
  calls: [{ id: 'call_1', name: 'file_read', args: ['{"path":', '"a.txt"}'] }],
}

const list: { readonly [kind in Dialect['kind']]: string } = { 'openai-compatible': 'messages', anthropic: 'messages', openai: 'input' }

const call = { id: 'call_1', type: 'function', function: { name: 'file_read', arguments: '{"path":"a.txt"}' } }

const givenBack: { readonly [kind in Dialect['kind']]: object[] } = {
  'openai-compatible': [
    { role: 'system' },
    { role: 'user' },
    { role: 'assistant', reasoning_content: 'I should read it.', content: 'Let me look. ', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'hello' },
  ],
  anthropic: [
    { role: 'user' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'I should read it.', signature: 'c2lnbmF0dXJl+/=' },
        { type: 'text', text: 'Let me look. ' },
        { type: 'tool_use', id: 'call_1', name: 'file_read', input: { path: 'a.txt' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'hello' }] },
  ],
  openai: [
    { role: 'system' },
    { role: 'user' },
    { type: 'reasoning', id: 'rs_1', encrypted_content: 'c2lnbmF0dXJl+/=', summary: [{ text: 'I should read it.' }] },
    { role: 'assistant', content: 'Let me look. ' },
    { type: 'function_call', call_id: 'call_1', name: 'file_read', arguments: '{"path":"a.txt"}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'hello' },
  ],
}

for (const dialect of dialects) {
  describe(dialect.kind, () => {
    test('two requests of a run share their prefix byte for byte: tools, system and all earlier messages', async () => {
      const fake = startFake(() => sends(dialect.events(speech)))
      const { provider } = providerAt(dialect, fake)
      const response = await ask(provider)
      await ask(provider, { ...afterwards(response), tools: question.tools.toReversed() })
      fake.stop()
      const [first, second] = fake.asked.map((asked): JsonObject => JSON.parse(asked.text))
      const { [list[dialect.kind]]: before, ...rest } = first ?? {}
      const { [list[dialect.kind]]: after, ...again } = second ?? {}
      expect(JSON.stringify(again)).toBe(JSON.stringify(rest))
      expect(JSON.stringify(after)).toStartWith(JSON.stringify(before).slice(0, -1))
      expect(fake.asked[0]?.text).not.toContain('secret-hint')
    })

    test('what a reply brought along goes back as it came', async () => {
      const fake = startFake(() => sends(dialect.events(speech)))
      const { provider } = providerAt(dialect, fake)
      await ask(provider, afterwards(await ask(provider)))
      fake.stop()
      const body: JsonObject = JSON.parse(fake.asked[1]?.text ?? '{}')
      expect(body[list[dialect.kind]]).toMatchObject(givenBack[dialect.kind])
    })

    test('the key travels as the vendor wants it and appears nowhere else', async () => {
      const fake = startFake(() => sends(dialect.events(speech)))
      const { provider, deps } = providerAt(dialect, fake)
      await ask(provider)
      fake.stop()
      const headers = fake.asked[0]?.headers
      expect(headers?.get('x-api-key') ?? headers?.get('authorization')).toBe(
        dialect.kind === 'anthropic' ? 'sk-test-key' : 'Bearer sk-test-key',
      )
      expect(fake.asked[0]?.path).toBe(`/v1${dialect.path}`)
      expect(fake.asked[0]?.text).not.toContain('sk-test-key')
      expect(JSON.stringify(deps.lines)).not.toContain('sk-test-key')
    })

    test('tokens are told with the cached ones, and cost what the prices say', async () => {
      const fake = startFake(() => sends(dialect.events({ text: ['hi'] })))
      const { usage, model, provider } = await ask(
        providerAt(dialect, fake, { config: { priceInput: 3, priceOutput: 15, priceCached: 0.3, priceCacheWrite: 3.75 } }).provider,
      )
      fake.stop()
      // Only Anthropic sells writing to its cache, at a price of its own.
      const written = dialect.kind === 'anthropic' ? 10 : 0
      const costMicros = Math.ceil((40 - written) * 3 + 60 * 0.3 + written * 3.75 + 20 * 15)
      const counts = { inputTokens: 100, outputTokens: 20, cachedInputTokens: 60 }
      expect(usage).toEqual({ ...counts, ...(written > 0 ? { cacheWriteTokens: written } : {}), costMicros })
      expect([model, provider]).toEqual(['model-1', 'far'])
    })

    test('the model asked for in the request wins over the configured one', async () => {
      const fake = startFake(() => sends(dialect.events({ text: ['hi'] })))
      const { provider } = providerAt(dialect, fake)
      await ask(provider, { ...question, model: 'other', temperature: 0.3 })
      fake.stop()
      expect(JSON.parse(fake.asked[0]?.text ?? '{}')).toMatchObject({ model: 'other', temperature: 0.3 })
    })

    test('pieces that arrive together are shown together', async () => {
      const words = Array.from({ length: 500 }, (_, n) => `word ${n} `)
      const fake = startFake(() => new Response(dialect.events({ text: words }).join('')))
      let pieces = 0
      let shown = ''
      for await (const chunk of providerAt(dialect, fake).provider.chat(question, new AbortController().signal)) {
        if (chunk.type === 'text') shown += chunk.text
        pieces++
      }
      fake.stop()
      expect(shown).toBe(words.join(''))
      expect(pieces).toBeLessThan(100)
    })

    test('an id of an earlier round is not given out again', async () => {
      const fake = startFake(() => sends(dialect.events(speech)))
      const { provider } = providerAt(dialect, fake)
      const { parts } = await ask(provider, afterwards(await ask(provider)))
      fake.stop()
      expect(parts.flatMap((part) => (part.type === 'call' ? [part.id] : []))).toEqual(['call_1-2'])
    })
  })
}

test('thinking that is hidden goes back as it came, signature, secret and all', async () => {
  const [, anthropic] = dialects
  if (anthropic === undefined) throw new Error('no dialect')
  const hidden = [
    { type: 'content_block_start', index: 0, content_block: { type: 'redacted_thinking', data: 'c2VjcmV0' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'signature_delta', signature: 'bmFrZWQ=' } },
    { type: 'content_block_stop', index: 1 },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  const events = anthropic
    .events({ calls: speech.calls })
    .flatMap((event) => (event.includes('"ping"') ? hidden : [event.replace('"index":0', '"index":2')]))
  const fake = startFake(() => sends(events))
  const { provider } = providerAt(anthropic, fake)
  await ask(provider, afterwards(await ask(provider)))
  fake.stop()
  expect(JSON.parse(fake.asked[1]?.text ?? '{}').messages[1].content).toMatchObject([
    { type: 'redacted_thinking', data: 'c2VjcmV0' },
    { type: 'thinking', thinking: '', signature: 'bmFrZWQ=' },
    { type: 'tool_use', id: 'call_1' },
  ])
})

test('without a count of tokens they are estimated, so that a budget still closes', async () => {
  const [compatible] = dialects
  if (compatible === undefined) throw new Error('no dialect')
  const events = compatible.events({ text: ['x'.repeat(400)] }).filter((event) => !event.includes('usage'))
  const fake = startFake(() => sends(events))
  const { provider, deps } = providerAt(compatible, fake)
  const { usage } = await ask(provider)
  fake.stop()
  expect(usage).toEqual({ inputTokens: expect.any(Number), outputTokens: 100, estimated: true })
  expect(usage.inputTokens).toBeWithin(30, 200)
  expect(deps.lines.map((line) => line.event)).toContain('provider usage estimated')
})

test('a vendor without a key, a server without an address and an address that is none fail before anything is sent', async () => {
  const deps = testDeps({ fetch: () => Promise.reject(new Error('must not be called')) })
  const bare = (config: Partial<WireConfig> & Pick<WireConfig, 'kind'>) =>
    outcomeOf(createWired({ name: 'far', config: { model: 'm', ...config }, deps }).chat(question, new AbortController().signal))
  const failures = await Promise.all([
    bare({ kind: 'anthropic' }),
    bare({ kind: 'openai', apiKeyEnv: 'MY_KEY' }),
    bare({ kind: 'openai-compatible' }),
    bare({ kind: 'openai-compatible', baseUrl: 'localhost:1234' }),
    bare({ kind: 'openai-compatible', baseUrl: 'ftp://localhost:1234' }),
    bare({ kind: 'openai-compatible', baseUrl: 'httpx://localhost:1234' }),
  ])
  expect(failures.map(({ code, failure }) => [code, failure?.message])).toEqual([
    ['auth', expect.stringContaining('ANTHROPIC_API_KEY')],
    ['auth', expect.stringContaining('MY_KEY')],
    ['bad_request', expect.stringContaining('base_url')],
    ['bad_request', expect.stringContaining('"localhost:1234"')],
    ['bad_request', expect.stringContaining('"ftp://localhost:1234"')],
    ['bad_request', expect.stringContaining('"httpx://localhost:1234"')],
  ])
})
