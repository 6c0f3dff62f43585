import { expect, test } from 'bun:test'
import { watchPostgres } from './postgres-watch.ts'

/** One look at a database whose clock is `aheadMs` ahead, with an answer that arrives `tripMs` after the server read its clock. */
async function skewAfter(aheadMs: number, tripMs: number): Promise<number> {
  const clock = { now: 1_000_000 }
  const unsafe = async () => {
    const at = clock.now + aheadMs
    clock.now += tripMs
    return [{ at, events: 0, read_only: 0 }]
  }
  const quiet = () => {}
  const watch = watchPostgres({ sql: { unsafe }, now: () => clock.now, log: quiet, missed: quiet, silent: quiet, readOnly: quiet })
  await watch.start()
  watch.stop()
  return watch.skewMs()
}

test('the clock of the database counts where it differs', async () => {
  expect(await skewAfter(60_000, 10)).toBe(59_995)
  expect(await skewAfter(-60_000, 10)).toBe(-60_005)
  expect(await skewAfter(100, 10)).toBe(0)
})

test('an answer that arrived while this process was stopped moves no clock', async () => {
  expect(await skewAfter(0, 3_000)).toBe(0)
  expect(await skewAfter(60_000, 3_000)).toBe(58_500)
})
