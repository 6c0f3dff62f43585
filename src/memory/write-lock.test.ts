import { expect, test } from 'bun:test'
import { createLockWait } from './commit-queue.ts'

/** Waits until it gives up; every `commitEvery` ms another process commits. @returns how long that took, and each waiting time. */
function waitFor({ stuckMs = 5000, commitEvery = 0, random = () => 1 }) {
  const clock = { now: 0 }
  const wait = createLockWait({
    version: () => (commitEvery === 0 ? 0 : Math.floor(clock.now / commitEvery)),
    stuckMs,
    now: () => clock.now,
    random,
  })
  const waits: number[] = []
  for (let ms = wait(); ms !== undefined; ms = wait()) {
    waits.push(ms)
    clock.now += ms
  }
  return { took: clock.now, waits }
}

test('one process that holds the lock and commits nothing is waited for so long and no longer', () => {
  const { took } = waitFor({ stuckMs: 5000 })
  expect(took).toBeGreaterThanOrEqual(5000)
  expect(took).toBeLessThan(5200)
})

test('as long as others get their turn it goes on, though not for ever', () => {
  const { took } = waitFor({ stuckMs: 5000, commitEvery: 900 })
  expect(took).toBeGreaterThan(60_000)
  expect(took).toBeLessThan(130_000)
})

test('a short limit holds as well', () => {
  expect(waitFor({ stuckMs: 10 }).took).toBeLessThan(40)
})

test('it looks soon at first, then at random times within a tenth of a second, however long it has waited', () => {
  const { waits } = waitFor({ commitEvery: 900, random: () => 0.5 })
  expect(waits[0]).toBeLessThan(3)
  expect(Math.max(...waits)).toBeLessThan(101)
  expect(waits.at(-1)).toBe(waits[20])
  expect(waitFor({ random: () => 0.1 }).waits[20]).not.toBe(waits[20])
})
