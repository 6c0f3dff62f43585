/** Tests through the three real wires what `effort` adds to a request, and that a request without it stays as it is. */

import { describe, expect, test } from 'bun:test'
import { type Dialect, dialects } from '../../test/support/dialects.ts'
import { ask, outcomeOf, providerAt, question, sends, startFake } from '../../test/support/vendor-fake.ts'
import type { JsonObject } from '../kit/json.ts'
import type { ChatRequest } from '../runtime/port.ts'
import { efforts } from './rows.ts'
import type { WireConfig } from './wire/provider-settings.ts'

const of = (kind: Dialect['kind']): Dialect => dialects.find((dialect) => dialect.kind === kind) ?? expect.unreachable()
const turn: ChatRequest = { ...question, metadata: undefined }

/** Returns the body that a request with these settings sends. */
async function sent(kind: Dialect['kind'], config: Partial<WireConfig>, request = turn): Promise<JsonObject> {
  const fake = startFake(() => sends(of(kind).events({ text: ['Hello.'] })))
  await ask(providerAt(of(kind), fake, { config }).provider, request)
  fake.stop()
  return JSON.parse(fake.asked[0]?.text ?? '{}')
}

/** Returns the members that the effort adds to a body or changes in it. */
async function added(kind: Dialect['kind'], config: Partial<WireConfig>, request = turn): Promise<JsonObject> {
  const [plain, body] = [await sent(kind, { ...config, effort: undefined }, request), await sent(kind, config, request)]
  expect(Object.keys(plain).filter((key) => !(key in body))).toEqual([])
  return Object.fromEntries(Object.entries(body).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(plain[key])))
}

for (const { kind } of dialects)
  describe(kind, () => {
    test('nothing is sent of an effort that is not set', async () => {
      expect(JSON.stringify(await sent(kind, { model: kind === 'openai' ? 'gpt-5' : 'm' }))).not.toMatch(/effort|thinking|"reasoning":/)
    })

    test('a summary, a picture that is read or a judgement gets no effort: its answer is short', async () => {
      expect(await added(kind, { effort: 'high' }, question)).toEqual({})
      expect(await added(kind, { effort: 'high' }, { ...turn, temperature: 0 })).toEqual({})
    })

    test('a refusal of tools together with an effort is about the effort', async () => {
      const says = "Function tools with reasoning_effort are not supported for this model; set reasoning_effort to 'none'"
      const fake = startFake(() => new Response(of(kind).errorBody('invalid_request_error', says), { status: 400 }))
      const { failure } = await outcomeOf(
        providerAt(of(kind), fake, { config: { effort: 'high' } }).provider.chat(turn, new AbortController().signal),
      )
      fake.stop()
      expect(failure?.message).toContain('effort = "high" was sent')
      expect(failure?.message).not.toContain('without tools')
    })

    test('a refusal of the level comes with what was sent, and is not tried again', async () => {
      const refused = () => new Response(of(kind).errorBody('invalid_request_error', 'Unsupported value: effort "xhigh"'), { status: 400 })
      const fake = startFake(refused)
      const { provider } = providerAt(of(kind), fake, { config: { effort: 'xhigh', maxRetries: 2 } })
      const { code, failure } = await outcomeOf(provider.chat(turn, new AbortController().signal))
      expect([code, fake.asked.length]).toEqual(['bad_request', 1])
      expect(failure?.message).toEndWith('effort "xhigh"; effort = "xhigh" was sent: choose another level, or none at all (docs/models.md)')
      const plain = await outcomeOf(providerAt(of(kind), fake).provider.chat(turn, new AbortController().signal))
      expect(plain.failure?.message).not.toContain('was sent')
      fake.stop()
    })
  })

test('chat completions say reasoning_effort, every level as it is', async () => {
  for (const effort of efforts) expect(await added('openai-compatible', { effort })).toEqual({ reasoning_effort: effort })
})

describe('the protocol of OpenAI says reasoning.effort, without a summary', () => {
  test('to its models', async () => {
    for (const effort of ['none', 'minimal', 'xhigh', 'max'] as const)
      expect(await added('openai', { effort, model: 'gpt-5' })).toEqual({ reasoning: { effort } })
  })

  test('to a model whose name the library does not know', async () => {
    expect(await added('openai', { effort: 'low', model: 'model-of-mine' })).toMatchObject({ reasoning: { effort: 'low' } })
  })
})

describe('the protocol of Anthropic', () => {
  const models = (effort: WireConfig['effort'], more: Partial<WireConfig> = {}) => ({ effort, ...more })

  test.each(['claude-sonnet-4-6', 'claude-opus-4-8', 'claude-opus-4-10', 'claude-sonnet-5', 'claude-opus-5-5'])(
    '%s thinks as it decides itself, by the effort, and its limit stays',
    async (model) => {
      const thinking = { type: 'adaptive', display: 'summarized' }
      for (const effort of ['low', 'max'] as const)
        expect(await added('anthropic', models(effort, { model }))).toEqual({ thinking, output_config: { effort } })
      expect(await added('anthropic', models('minimal', { model }))).toEqual({ thinking, output_config: { effort: 'low' } })
    },
  )

  test.each(['claude-sonnet-4-5', 'claude-opus-4-1-20250805', 'claude-sonnet-4@20250514', 'claude-3-7-sonnet-latest', 'glm-5'])(
    '%s thinks within a part of its limit',
    async (model) => {
      const limits = { model, maxOutputTokens: 20_000, longestAnswer: 32_000 }
      for (const [effort, tokens] of [
        ['minimal', 1024],
        ['medium', 6000],
        ['max', 18_000],
      ] as const) {
        const body = await sent('anthropic', models(effort, limits))
        expect(body).toMatchObject({ max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: tokens } })
        expect(body).not.toHaveProperty('output_config')
      }
    },
  )

  test('what a budget grants stays the longest answer, thinking included', async () => {
    const { max_tokens: most, thinking } = await sent('anthropic', models('high', { model: 'claude-sonnet-4-5' }), {
      ...turn,
      maxOutputTokens: 5000,
    })
    expect([most, thinking]).toEqual([5000, { type: 'enabled', budget_tokens: 3000 }])
  })

  test('without any limit, thinking stays below the longest answer of its model', async () => {
    for (const longestAnswer of [undefined, 8192, 64_000]) {
      const { max_tokens: most, thinking } = await sent('anthropic', models('max', { model: 'claude-opus-4-1', longestAnswer }))
      const { budget_tokens: tokens } = Object(thinking)
      expect([tokens >= 1024, tokens < Number(most), Number(most) <= 32_000]).toEqual([true, true, true])
    }
  })

  test('a limit that leaves no room for the least of thinking has none, and none turns it off', async () => {
    const model = 'claude-sonnet-4-5'
    expect(await added('anthropic', models('max', { model, maxOutputTokens: 2047 }))).toEqual({})
    expect(await added('anthropic', models('none', { model }))).toEqual({ thinking: { type: 'disabled' } })
  })
})
