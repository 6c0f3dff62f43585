import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WireProvider } from '../../../config/config.ts'
import { createProvider } from '../../../providers/create-provider.ts'
import type { Quote } from '../../../runtime/port.ts'
import { FailureError } from '../../failure.ts'
import { factsFileOf, factsOf, hasPrices, withFacts } from './model-facts.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'braidclaw-known-'))
  mkdirSync(home, { recursive: true })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const shared = { stream: true, idleTimeoutS: 60, totalTimeoutS: 600, maxRetries: 0, maxConcurrent: 16 } as const
const openai: WireProvider = { ...shared, kind: 'openai', name: 'openai', model: 'gpt-4o', apiKeyEnv: 'OPENAI_API_KEY' }
const write = (text: string) => writeFileSync(join(home, 'models.toml'), text)
const known = async (found: WireProvider, model = found.model) => factsOf(found, model, await factsFileOf(home))

describe('what is not known', () => {
  test('stays unknown: another address, another model, half a price', async () => {
    const none = { contextTokens: undefined, maxOutputTokens: undefined, prices: undefined, sees: undefined, reasons: undefined }
    expect(await known({ ...openai, baseUrl: 'https://proxy.example.org/v1' })).toEqual(none)
    expect(await known(openai, 'gpt-4o-of-nobody')).toEqual(none)
    expect(hasPrices(await known({ ...openai, priceInput: 3 }))).toBe(false)
  })

  test('an error in models.toml is told before anything is asked', async () => {
    write('[openai.gpt-4o]\nprice_input = "3"\nprice_output = 4\n')
    const failure = await factsFileOf(home).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(FailureError)
    expect(String(failure)).toContain('models.toml:2:1: openai.gpt-4o.price_input: must be a number')
  })
})

test('the most specific source counts: models.toml, then the rows, then the table; all prices come from one', async () => {
  const table = await known(openai)
  expect([table.contextTokens?.value, table.prices?.value.input, table.prices?.origin.date]).toEqual([128_000, 2.5, '2026-05-08'])
  const rows = await known({ ...openai, priceInput: 1, priceOutput: 2, contextTokens: 64_000 })
  expect([rows.contextTokens?.value, rows.prices?.value]).toEqual([
    64_000,
    { input: 1, output: 2, cached: undefined, cacheWrite: undefined },
  ])
  expect([rows.prices?.origin.name, rows.maxOutputTokens?.origin.date]).toEqual(['[providers.models.openai]', '2026-05-08'])
  write('[openai.gpt-4o]\nprice_input = 7\nprice_output = 8\n[openai.other]\ncontext_tokens = 9_000\n')
  const file = await known({ ...openai, priceInput: 1, priceOutput: 2, contextTokens: 64_000 })
  expect([file.contextTokens?.value, file.prices?.value.input, file.prices?.origin.name]).toEqual([64_000, 7, 'models.toml'])
  expect((await known(openai, 'other')).contextTokens?.value).toBe(9000)
})

test('a provider has the window that is known, and reserves no longer answer than its model can give', async () => {
  const facts = await known({ ...openai, model: 'gpt-4' })
  const asked: Quote[] = []
  const provider = await createProvider(withFacts({ ...openai, model: 'gpt-4' }, facts), {
    fetch: () => Promise.reject(new Error('nobody is asked here')),
    log: () => {},
    sleep: () => Promise.resolve(),
    random: () => 0,
    now: Date.now,
    maxResponseBytes: 1000,
    secret: () => 'a-key-for-the-test',
    provider: () => Promise.reject(new Error('none')),
    count: () => 1,
    brain: () => Promise.reject(new Error('none')),
    ...(facts.maxOutputTokens ? { longestAnswer: facts.maxOutputTokens.value } : {}),
  })
  expect(provider.capabilities().contextTokens).toBe(8192)
  const meter = async (quote: Quote) => {
    asked.push(quote)
    throw new Error('no budget')
  }
  const request = { systemPrompt: '', messages: [], tools: [], model: 'gpt-4', meter }
  await expect(Array.fromAsync(provider.chat(request, new AbortController().signal))).rejects.toThrow()
  expect(asked).toMatchObject([{ model: 'gpt-4', outputTokens: 8192, prices: { input: 30, output: 60 } }])
})
