import { expect, test } from 'bun:test'
import { addUsage } from '../../runtime/usage.ts'
import { usageLine } from './render.ts'

test.each([
  [{ inputTokens: 1234, outputTokens: 56 }, '1,234 tokens in, 56 out'],
  [{ inputTokens: 1234, outputTokens: 56, costMicros: 2100 }, '1,234 tokens in, 56 out, $0.0021'],
  [{ inputTokens: 2006, outputTokens: 56, cachedInputTokens: 1920 }, '2,006 tokens in (96% cached), 56 out'],
  [{ inputTokens: 1, outputTokens: 0, costMicros: 12 }, '1 token in, 0 out, less than $0.0001'],
  [{ inputTokens: 1, outputTokens: 0, costMicros: 0 }, '1 token in, 0 out, $0.0000'],
  [{ inputTokens: 9_000_000, outputTokens: 5, costMicros: 12_345_678 }, '9,000,000 tokens in, 5 out, $12.35'],
  [{ inputTokens: 0, outputTokens: 0 }, undefined],
  [undefined, undefined],
])('%j is %s', (usage, words) => expect(usageLine(usage)).toBe(words))

test('calls are added up, and the money as long as it is known of each', () => {
  const one = { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1, cacheWriteTokens: 2, costMicros: 10 }
  expect(addUsage(undefined, one)).toEqual(one)
  const two = { inputTokens: 6, outputTokens: 4, cachedInputTokens: 2, cacheWriteTokens: 4, costMicros: 20 }
  expect(addUsage(addUsage(undefined, one), one)).toEqual(two)
  const unknown = { inputTokens: 1, outputTokens: 1 }
  const cache = { cachedInputTokens: 1, cacheWriteTokens: 2 }
  expect(addUsage(addUsage(undefined, one), unknown)).toEqual({ inputTokens: 4, outputTokens: 3, ...cache })
  expect(addUsage(addUsage(undefined, unknown), one)).toEqual({ inputTokens: 4, outputTokens: 3, ...cache })
})
