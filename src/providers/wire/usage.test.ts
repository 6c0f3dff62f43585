import { expect, test } from 'bun:test'
import { usageOf } from './usage.ts'

type Counts = { readonly input?: number; readonly output?: number; readonly cached?: number }

const reported = ({ input, output, cached }: Counts) => ({
  inputTokens: { total: input, noCache: undefined, cacheRead: cached, cacheWrite: undefined },
  outputTokens: { total: output, text: undefined, reasoning: undefined },
})
const usage = (counts: Counts, prices = {}) => usageOf({ reported: reported(counts), sentTokens: 100, gotBytes: 40, prices })

test('an unknown price gives no cost, rather than none', () => {
  expect(usage({ input: 10, output: 5 })).not.toHaveProperty('costMicros')
  expect(usage({ input: 10, output: 5 }, { input: 3 })).not.toHaveProperty('costMicros')
})

test('dollars a million tokens are millionths of a dollar a token; cached ones may be cheaper', () => {
  expect(usage({ input: 10, output: 5, cached: 4 }, { input: 3, output: 15 }).costMicros).toBe(105)
  expect(usage({ input: 10, output: 5, cached: 4 }, { input: 3, output: 15, cached: 0.25 }).costMicros).toBe(94)
  expect(usage({ input: 10, output: 5 }, { input: 0, output: 0 }).costMicros).toBe(0)
})

test('a server that counts nothing, or nonsense, is estimated', () => {
  for (const counts of [{}, { input: 0, output: 0 }, { input: Number.NaN, output: 5 }]) {
    expect(usage(counts)).toEqual({ inputTokens: 100, outputTokens: 10, estimated: true })
  }
  expect(usage({ input: 10 })).toMatchObject({ inputTokens: 10, outputTokens: 10 })
})

test('more cached tokens than there were are not believed', () => {
  expect(usage({ input: 10, output: 5, cached: 99 }, { input: 1, output: 1 })).toMatchObject({ cachedInputTokens: 10, costMicros: 15 })
})
