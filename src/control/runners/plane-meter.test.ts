/** Model calls of the own runner are paid by the control plane. */

import { expect, test } from 'bun:test'
import { type ChatRequest, type ModelChunk, type Provider, ProviderFailure, type Quote } from '../../runtime/port.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { meteredByPlane, planeMeter } from './own-runner.ts'

const quote: Quote = { provider: 'p', model: 'm', inputTokens: 1_000, outputTokens: 16_000, prices: null, longestMs: 1_000 }

function budget(left: number | null) {
  const seen: unknown[] = []
  return {
    seen,
    remaining: async () => left,
    async reserve({ tokens }: { tokens: number }) {
      seen.push({ reserve: tokens })
      if (left !== null && tokens > left) throw new PlaneRefusal('budget_exceeded', `the role has ${left} tokens left`)
      return { reservation_id: 'r1', tokens, budget_remaining: left === null ? null : left - tokens }
    },
    async settle({ tokens }: { tokens: number }) {
      seen.push({ settle: tokens })
      return { tokens, budget_remaining: left === null ? null : left - tokens }
    },
  }
}

test('without a limit the whole quote is reserved, and what was spent is settled', async () => {
  const plane = budget(null)
  const { outputTokens, settle } = await planeMeter(plane)(quote)
  await settle({ inputTokens: 900, outputTokens: 40 })
  expect(outputTokens).toBe(16_000)
  expect(plane.seen).toEqual([{ reserve: 17_000 }, { settle: 940 }])
})

test('a small budget shortens the answer and does not refuse the call', async () => {
  const plane = budget(5_000)
  const { outputTokens } = await planeMeter(plane)(quote)
  expect(outputTokens).toBe(4_000)
  expect(plane.seen).toEqual([{ reserve: 5_000 }])
})

test('a budget that pays for nothing ends the call before it begins', async () => {
  const failure = await planeMeter(budget(500))(quote).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ProviderFailure)
  expect(failure).toMatchObject({ code: 'budget', message: 'the role has 500 tokens left' })
})

test.each([
  ['unknown', 17_000],
  ['nothing', 0],
] as const)('a usage that is %s costs %d', async (used, cost) => {
  const plane = budget(null)
  await (await planeMeter(plane)(quote)).settle(used)
  expect(plane.seen.at(-1)).toEqual({ settle: cost })
})

test('an estimated usage costs at least what was reserved', async () => {
  const plane = budget(null)
  await (await planeMeter(plane)(quote)).settle({ inputTokens: 1, outputTokens: 1, estimated: true })
  expect(plane.seen.at(-1)).toEqual({ settle: 17_000 })
})

test('the budget of the home counts too, and is given back when the control plane refuses', async () => {
  const home: unknown[] = []
  const provider: Provider = {
    name: 'p',
    capabilities: () => ({ streaming: true, tools: true, thinking: false, contextTokens: 0 }),
    async *chat({ meter }: ChatRequest): AsyncGenerator<ModelChunk> {
      await meter?.(quote)
      yield { type: 'text', text: 'never' }
    },
  }
  const meter = async () => ({ outputTokens: 8_000, settle: async (used: unknown) => void home.push(used) })
  const request = { systemPrompt: '', messages: [], tools: [], model: 'm', meter }
  const asked = Array.fromAsync(meteredByPlane(provider, budget(100)).chat(request, new AbortController().signal))
  await expect(asked).rejects.toMatchObject({ code: 'budget' })
  expect(home).toEqual(['nothing'])
})
