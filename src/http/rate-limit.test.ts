import { expect, test } from 'bun:test'
import { createRateLimit } from './callers.ts'

test('a key may burst, then waits for the bucket to refill; others are not held up, and memory is bounded', () => {
  const clock = { now: 0 }
  const limit = createRateLimit({ perSecond: 2, burst: 3, now: () => clock.now, keys: 2 })
  expect([1, 2, 3, 4].map(() => limit.take('a'))).toEqual([undefined, undefined, undefined, 1])
  expect(limit.take('b')).toBeUndefined()
  clock.now = 500
  expect([limit.take('a'), limit.take('a')]).toEqual([undefined, 1])
  // The clock was set back: nothing is gained.
  clock.now = -10_000
  expect(limit.take('a')).toBe(1)
  for (const other of ['c', 'd']) limit.take(other)
  expect(limit.take('a')).toBeUndefined()
})

test('the keys used last are not forgotten, however many others come', () => {
  const limit = createRateLimit({ perSecond: 1, burst: 1, now: () => 0, keys: 4 })
  limit.take('a')
  for (const other of ['b', 'c', 'd', 'e', 'f']) {
    limit.take(other)
    expect(limit.take('a')).toBe(1)
  }
  expect(limit.take('b')).toBeUndefined()
})
