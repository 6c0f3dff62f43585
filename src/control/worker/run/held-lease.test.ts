/** Keeping a lease: beats at a third of it, and its end by our own clock. */

import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Beat } from '../../contract/task-shapes.ts'
import { keepLease } from './held-lease.ts'

const beat: Beat = { lease_until: '2026-04-07T10:31:00.000Z', cancel_requested: false, budget_remaining: null }
const monotonic = () => performance.now()
const never = new AbortController().signal

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

/** A claim whose lease has this length by the clock of the control plane, which is ten minutes wrong. */
function claimOf(ms: number) {
  const at = Date.now() + 600_000
  const task = { updated_at: new Date(at).toISOString() }
  return { lease_until: new Date(at + ms).toISOString(), task } as Parameters<typeof keepLease>[0]['claim']
}

function lease(ms: number, answer: () => Promise<Beat>, claimedAt = monotonic(), disconnected = never) {
  const beats: number[] = []
  const kept = keepLease({
    ...{ claim: claimOf(ms), claimedAt, usualSeconds: 60, monotonic, disconnected },
    beat() {
      beats.push(monotonic())
      return answer()
    },
  })
  return { kept, beats }
}

/** Moves the clock in steps that are shorter than any timer here; the answers of beats arrive in between. */
async function pass(ms: number): Promise<void> {
  for (let step = 0; step < ms; step += 5) {
    jest.advanceTimersByTime(5)
    for (let tick = 0; tick < 20; tick += 1) await Promise.resolve()
  }
}

/** @returns after how many ms the run had to stop, within a second */
async function untilStopped({ signal }: Pick<ReturnType<typeof keepLease>, 'signal'>): Promise<number> {
  const began = monotonic()
  while (!signal.aborted && monotonic() < began + 1_000) await pass(5)
  return monotonic() - began
}

test('beats come at a third of the lease, however wrong the clocks are', async () => {
  const began = monotonic()
  const { kept, beats } = lease(300, async () => beat)
  await pass(1_000)
  expect(kept.isHeld()).toBe(true)
  kept.end()
  await pass(500)
  // A part of the lease is kept for ending the processes, so a third of it is 95 ms.
  expect(beats.map((at) => Math.round(at - began))).toEqual(Array.from({ length: 10 }, (_, n) => 95 * (n + 1)))
})

test('a refused beat ends the lease at once', async () => {
  const { kept } = lease(150, () => Promise.reject(new PlaneRefusal('lease_lost', 'RUN-002 has it')))
  expect(await untilStopped(kept)).toBe(50)
  expect(kept.news()).toEqual({ kind: 'lost', why: 'RUN-002 has it' })
  expect(kept.lost.aborted).toBe(true)
  expect(kept.isHeld()).toBe(false)
})

test('a single refusal of the caller keeps the lease, three in a row end it', async () => {
  const refusals = ['unauthorized', 'forbidden', 'not_found', 'bad_request'] as const
  for (const code of refusals) {
    const answers = [code, code, undefined, code, undefined]
    const { kept } = lease(400, async () => {
      const refused = answers.shift()
      if (refused !== undefined) throw new PlaneRefusal(refused, 'once')
      return beat
    })
    await pass(1_500)
    expect([code, kept.isHeld()]).toEqual([code, true])
    kept.end()
  }
  const { kept, beats } = lease(60_000, () => Promise.reject(new PlaneRefusal('unauthorized', 'revoked')))
  await pass(25_000)
  expect([beats.length, kept.news()]).toEqual([3, { kind: 'lost', why: 'revoked' }])
})

test('a worker that leaves without an answer gives its lease up', () => {
  const disconnected = new AbortController()
  const { kept } = lease(60_000, async () => beat, monotonic(), disconnected.signal)
  expect(kept.isHeld()).toBe(true)
  disconnected.abort()
  expect(kept.isHeld()).toBe(false)
  expect(kept.lost.aborted).toBe(true)
})

test('without a connection the run goes on until the lease expires, and not longer', async () => {
  const { kept, beats } = lease(400, () => Promise.reject(new PlaneRefusal('unavailable', 'no route')))
  await pass(250)
  expect(kept.isHeld()).toBe(true)
  expect(250 + (await untilStopped(kept))).toBe(380)
  expect(kept.lost.aborted).toBe(true)
  expect(kept.isHeld()).toBe(false)
  expect(beats.length).toBeGreaterThan(1)
})

test('a connection that comes back in time keeps the lease', async () => {
  const state = { failures: 2 }
  const { kept } = lease(400, () => (state.failures-- > 0 ? Promise.reject(new Error('reset')) : Promise.resolve(beat)))
  await pass(700)
  expect(kept.isHeld()).toBe(true)
  kept.end()
})

test('a beat that never answers does not keep the lease alive', async () => {
  const { kept } = lease(200, () => new Promise(() => {}))
  expect(await untilStopped(kept)).toBeLessThanOrEqual(200)
  expect(kept.news()?.kind).toBe('lost')
})

test('a worker that slept past its lease knows it before it asks anybody', () => {
  const state = { now: 1_000 }
  const kept = keepLease({
    claim: claimOf(60_000),
    claimedAt: 1_000,
    usualSeconds: 60,
    monotonic: () => state.now,
    beat: async () => beat,
    disconnected: never,
  })
  expect(kept.isHeld()).toBe(true)
  state.now += 61_000
  expect(kept.isHeld()).toBe(false)
  expect(kept.signal.aborted).toBe(true)
})

test('a cancelled task stops the run and keeps the lease for as long as it takes to give it back', async () => {
  const { kept } = lease(150, async () => ({ ...beat, cancel_requested: true }))
  await untilStopped(kept)
  expect(kept.news()?.kind).toBe('cancelled')
  expect(kept.lost.aborted).toBe(false)
  expect(kept.isHeld()).toBe(true)
  // Not for ever: the control plane extends it once.
  await pass(300)
  expect(kept.isHeld()).toBe(false)
  kept.end()
})

test('a claim that waited long asks at once how its lease stands', async () => {
  const { kept, beats } = lease(300, async () => beat, monotonic() - 20_000)
  await pass(20)
  expect(beats).toHaveLength(1)
  expect(kept.isHeld()).toBe(true)
  kept.end()
})
