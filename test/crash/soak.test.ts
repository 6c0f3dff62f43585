/** Turn after turn with tools in one program: it does not grow. The long run, by hand: SOAK_TURNS=10000 bun test test/crash/soak.test.ts */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { isDeep, repetitions } from '../support/tier.ts'
import { ratioOf, type Sample, sizeAt } from './soak.ts'

const turns = Number(process.env.SOAK_TURNS ?? repetitions({ fast: 100, deep: 2400 }))
const grown = 1.08
/** Few turns end before the bounded caches are full, so the fast tier sees large leaks alone. */
const allowed = isDeep ? grown : 1.2

/** In a process of its own: what the test runner itself takes must not count. */
async function soak(): Promise<{ ratio: number; early: number; end: number }> {
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', join(import.meta.dir, 'soak.ts'), String(turns)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(stderr)
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
}

test(
  `after ${turns} turns the program is at most ${allowed} times as large as when it was warm`,
  async () => {
    const found = await soak()
    console.log(`${turns} turns:`, found)
    expect(found.end).toBeGreaterThan(20 * 1024 * 1024)
    expect(found.ratio).toBeLessThanOrEqual(allowed)
  },
  turns * 200 + 60_000,
)

test('a leak of a few kilobytes a turn would be seen, the saw teeth of the collector are not taken for one', () => {
  const samples = (leak: number): Sample[] =>
    Array.from({ length: 300 }, (_, at) => ({ turn: (at + 1) * 5, rss: 100e6 + (at % 7) * 4e6 + (at + 1) * 5 * leak, ms: 0 }))
  expect(ratioOf(samples(0), 300)).toBeLessThan(1.05)
  expect(ratioOf(samples(20_000), 300)).toBeGreaterThan(grown)
  expect(sizeAt(samples(0), 1500)).toBeLessThan(130e6)
})
