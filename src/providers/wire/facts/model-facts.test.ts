import { describe, expect, test } from 'bun:test'
import { catalogue, catalogueSource } from './catalogue.ts'
import { catalogueFacts, factsIn, vendorHosts } from './model-facts.ts'

describe('the table in the program', () => {
  test('is not asked for an address that is not the vendor itself: a proxy has its own prices', async () => {
    for (const address of [
      undefined,
      '',
      'nonsense',
      'http://api.openai.com/v1',
      'https://api.openai.com:8443/v1',
      'https://api.openai.com.example.org/v1',
      'https://proxy.example.org/v1',
      'http://127.0.0.1:1234/v1',
    ])
      expect(await catalogueFacts(address, 'gpt-5.4-mini')).toBeUndefined()
  })

  test('says nothing of a model that it does not list, however similar its name is', async () => {
    for (const model of ['', ' ', 'gpt', 'gpt-5.4-mini-2099', 'gpt-5.4-min', '400000', 'gpt-5.4-mini 400000', '\n', 'constructor'])
      expect(await catalogueFacts('https://api.openai.com/v1', model)).toBeUndefined()
    expect(await catalogueFacts('https://api.anthropic.com/v1', 'gpt-5.4-mini')).toBeUndefined()
  })

  test('knows the windows and prices that OpenAI and Anthropic published', async () => {
    expect(await catalogueFacts('https://api.openai.com/v1', 'gpt-4o')).toEqual({
      contextTokens: 128_000,
      maxOutputTokens: 16_384,
      prices: { input: 2.5, output: 10, cached: 1.25, cacheWrite: undefined },
      sees: ['text', 'image'],
      reasons: false,
      ...catalogueSource,
    })
    expect(await catalogueFacts('https://api.anthropic.com/v1/', 'claude-haiku-4-5')).toMatchObject({
      contextTokens: 200_000,
      prices: { input: 1, output: 5, cached: 0.1, cacheWrite: 1.25 },
    })
  })

  test('leaves unknown what the source does not know: a router has no price, only a name that says so is free', async () => {
    const auto = await catalogueFacts('https://openrouter.ai/api/v1', 'openrouter/auto')
    expect(auto).toMatchObject({ contextTokens: 2_000_000 })
    expect(auto).not.toHaveProperty('prices')
    const lines = Object.values(catalogue).flatMap((vendor) => vendor.trim().split('\n'))
    const free = lines.filter((line) => / 0 0 \S+ \S+ \S+ \S+$/.test(line))
    expect(free.filter((line) => !line.includes(':free '))).toEqual([])
  })

  test('has eight readable facts in every line, and lines for every vendor that has an address', () => {
    for (const vendor of Object.values(vendorHosts)) {
      const lines = (catalogue[vendor] ?? '').trim().split('\n')
      expect(lines.length).toBeGreaterThan(1)
      for (const line of lines) expect(line).toMatch(/^\S+( (-|[1-9]\d*)){2}( (-|\d+(\.\d+)?)){4} (-|[a-z+]+) (yes|no)$/)
    }
  })
})

test('a price without its other half is no price', () => {
  expect(factsIn('\nm 1000 - 3 - - - -\n', 'm')).toEqual({ contextTokens: 1000 })
})
