import { expect, test } from 'bun:test'
import { ProviderFailure } from '../../runtime/port.ts'
import { startDeadline } from './deadline.ts'

/** A clock that the test moves; `due` holds the active sleeps. */
function fakeClock() {
  let at = 0
  const due = new Set<{ readonly until: number; wake(): void }>()
  return {
    due,
    monotonic: () => at,
    sleep: (ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const sleeper = { until: at + ms, wake: () => due.delete(sleeper) && resolve() }
        due.add(sleeper)
        signal.addEventListener('abort', sleeper.wake, { once: true })
      }),
    async to(time: number) {
      at = time
      for (const sleeper of due) if (sleeper.until <= at) sleeper.wake()
      await Promise.resolve()
      await Promise.resolve()
      await Promise.resolve()
    },
  }
}

function deadline(over: { readonly totalS?: number; readonly idleS?: number; readonly signal?: AbortSignal } = {}) {
  const clock = fakeClock()
  const signal = over.signal ?? new AbortController().signal
  const limits = { totalS: over.totalS ?? 100, idleS: over.idleS ?? 10 }
  const started = startDeadline({ provider: 'p', signal, ...limits, deps: clock })
  const failed = () => (started.signal.reason instanceof ProviderFailure ? started.signal.reason.message : undefined)
  return { clock, failed, ...started }
}

test('silence is a failure exactly when it has lasted long enough', async () => {
  const { clock, waiting, failed } = deadline()
  await clock.to(9_000)
  waiting()
  await clock.to(10_000)
  await clock.to(18_999)
  expect(failed()).toBeUndefined()
  await clock.to(19_000)
  expect(failed()).toContain('idle_timeout_s = 10')
})

test('every sign of life starts the silence anew', async () => {
  const { clock, waiting, arrived, failed } = deadline()
  for (const at of [1, 8, 15, 22, 29]) {
    waiting()
    await clock.to(at * 1_000)
    arrived()
  }
  expect(failed()).toBeUndefined()
})

test('a slow reader is not silence of the far side', async () => {
  const { clock, waiting, arrived, failed } = deadline()
  waiting()
  arrived()
  for (const at of [10, 20, 30, 90]) await clock.to(at * 1_000)
  expect(failed()).toBeUndefined()
})

test('the total time is a failure whatever is heard', async () => {
  const { clock, waiting, arrived, failed } = deadline()
  for (let at = 1; at <= 100; at++) {
    waiting()
    await clock.to(at * 1_000)
    arrived()
  }
  expect(failed()).toContain('total_timeout_s = 100')
})

test('waking late does not lengthen the total', async () => {
  let sleeps = 0
  const busy = () => {
    sleeps += 1
    return Bun.sleep(60)
  }
  const deps = { now: Date.now, sleep: busy }
  const started = startDeadline({ provider: 'p', signal: new AbortController().signal, totalS: 0.1, idleS: 0.01, deps })
  for (let looks = 0; looks < 400 && !started.signal.aborted; looks++) await Bun.sleep(5)
  expect(started.signal.reason.message).toContain('total_timeout_s = 0.1')
  // The sum would be ten if each sleep counted only its requested time.
  expect(sleeps).toBeLessThan(5)
})

test('a limit that is no number is over at once', async () => {
  const { failed } = deadline({ idleS: Number.NaN })
  await Promise.resolve()
  expect(failed()).toContain('idle_timeout_s = NaN')
})

test('a cancel is aborted, also when it came first', () => {
  const abort = new AbortController()
  const { failed } = deadline({ signal: abort.signal })
  abort.abort()
  expect(failed()).toContain('cancelled')
  expect(deadline({ signal: abort.signal }).failed()).toContain('cancelled')
})

test('nothing is left running after the end', async () => {
  const { clock, end } = deadline()
  end()
  await Promise.resolve()
  expect(clock.due.size).toBe(0)
})

test('a limit of years does not fire at once', () => {
  const { clock } = deadline({ totalS: 1e9, idleS: 1e9 })
  expect(Math.max(...[...clock.due].map((sleeper) => sleeper.until))).toBe(2_147_483_647)
})

test.each([86_400_000, -86_400_000])(
  'a clock that is set %i ms on in the middle of a wait ends nothing and prolongs nothing',
  async (jump) => {
    const clock = fakeClock()
    const wall = { at: 1e12 }
    const deps = { ...clock, now: () => wall.at }
    const { waiting, signal } = startDeadline({ provider: 'p', signal: new AbortController().signal, totalS: 100, idleS: 10, deps })
    waiting()
    wall.at += jump
    await clock.to(9_999)
    await clock.to(10_000)
    expect(String(signal.reason)).toContain('idle_timeout_s = 10')
    expect(clock.due.size).toBe(0)
  },
)

test.each([86_400_000, -86_400_000])('nor before its time, with a clock that is set %i ms on', async (jump) => {
  const clock = fakeClock()
  const wall = { at: 1e12 }
  const deps = { ...clock, now: () => wall.at }
  const { waiting, arrived, signal } = startDeadline({ provider: 'p', signal: new AbortController().signal, totalS: 100, idleS: 10, deps })
  await clock.to(5_000)
  waiting()
  wall.at += jump
  await clock.to(10_000)
  expect(signal.aborted).toBe(false)
  arrived()
})
