/** The benchmark's own parts: floors that do the whole turn on the loopback model, and a report that misses no missed target. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { comparisonOf } from './against.ts'
import { type Model, startModel } from './loopback.ts'
import { scenarios } from './model.ts'
import { type Figure, judge, table } from './report.ts'
import { replaceSection } from './results.ts'

const workspace = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
let model: Model

beforeAll(async () => {
  writeFileSync(join(workspace, 'notes.txt'), 'Buy milk.')
  model = await startModel()
})

afterAll(() => {
  model.stop()
  rmSync(workspace, { recursive: true, force: true })
})

async function run(floor: string, scenario: string) {
  const env = { PATH: '/usr/bin:/bin', HOME: workspace, BENCH_URL: `${model.url}/v1`, BENCH_STORE: workspace }
  const command = [process.execPath, '--config=/dev/null', join(import.meta.dir, 'floor', `${floor}.ts`), scenario, 'What?']
  const child = Bun.spawn(command, { cwd: workspace, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [stdout, code] = await Promise.all([child.stdout.text(), child.exited])
  return { stdout, code, stats: await model.stats() }
}

describe.each(Object.entries(scenarios))('%s', (name, { rounds, answer }) => {
  test.each(['bare', 'store'])('the %s floor does the whole turn', async (floor) => {
    const { stdout, code, stats } = await run(floor, name)
    expect({ stdout, code }).toEqual({ stdout: `${answer.join('')}\n`, code: 0 })
    expect(stats).toMatchObject({ requests: rounds + 1, firstTools: 2 })
    expect(stats.firstBytes).toBeGreaterThan(100)
  })
})

test('every receipt of the store floor names the one before it', async () => {
  const path = join(workspace, 'floor.receipts')
  await Bun.write(path, '')
  await run('store', '20-reads')
  const receipts = (await Bun.file(path).text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(receipts).toHaveLength(20)
  expect(receipts.slice(1).map((receipt) => receipt.previous)).toEqual(receipts.slice(0, -1).map((receipt) => receipt.hash))
})

test('a model without a name that it knows says so', async () => {
  const response = await fetch(`${model.url}/v1/chat/completions`, { method: 'POST', body: '{"model":"none","messages":[]}' })
  expect(response.status).toBe(404)
})

const figure = (scenario: string, program: string, median: number, more: Partial<Figure> = {}): Figure => ({
  scenario,
  program,
  times: [median],
  median,
  min: median,
  ...more,
})

test('a target is missed just above its limit and met at it', () => {
  const floor = figure('text', 'store', 10)
  const verdict = (ours: Figure) => judge([floor, ours]).map(({ what, met }) => ({ what, met }))
  expect(verdict(figure('text', 'braidclaw', 19, { mib: 60, bytes: 4400 }))).toEqual([
    { what: 'text against store', met: true },
    { what: 'text, peak memory', met: true },
    { what: 'text, first request', met: true },
  ])
  expect(verdict(figure('text', 'braidclaw', 19.1, { mib: 60.1, bytes: 4401 })).map(({ met }) => met)).toEqual([false, false, false])
  expect(table([floor], judge([floor, figure('text', 'braidclaw', 24)]))).toContain(
    '| text against store | 2.40 × | 2.40 × | 2.40 × | 1.90 × | **no** |',
  )
})

test('what decides is the ratio within a round: a slow moment falls on both', () => {
  const floor = figure('text', 'store', 10, { times: [10, 10, 30] })
  const ours = figure('text', 'braidclaw', 51, { times: [17, 51, 51], min: 17 })
  expect(judge([floor, ours])[0]).toMatchObject({ value: 1.7, medians: 5.1, minima: 1.7, met: true })
})

test('what nothing is aimed at is shown and misses nothing', () => {
  const [verdict] = judge([figure('one-tool-key', 'store', 10), figure('one-tool-key', 'braidclaw', 90)])
  expect(verdict).toMatchObject({ value: 9 })
  expect(verdict?.met).toBeUndefined()
  expect(table([], verdict ? [verdict] : [])).toContain('| one-tool-key against store | 9.00 × | 9.00 × | 9.00 × |  |  |')
})

test('a section of the results is replaced, the others stay', () => {
  const page = '# Results\n\n## Kernel\n\nold kernel\n\n## Turns\n\nold turns\n\n## Memory\n\nold memory\n'
  const replaced = replaceSection(page, 'Turns', 'new turns')
  expect(replaced).not.toContain('old turns')
  expect(replaced.indexOf('old kernel')).toBeLessThan(replaced.indexOf('new turns'))
  expect(replaced.indexOf('new turns')).toBeLessThan(replaced.indexOf('old memory'))
  expect(replaceSection(replaced, 'Receipts', 'new receipts')).toEndWith('new receipts\n')
  expect(replaceSection('# Results\n', 'Turns', 'first')).toMatch(/^# Results\n\n## Turns\n\n.*\n\nfirst\n$/)
})

describe('a comparison with an earlier commit', () => {
  const timing = (times: readonly number[]) => ({ times, median: 0, min: 0 })
  const noisy = Array.from({ length: 60 }, (_, at) => 30 + (at % 7))

  test('is the median of the rounds, whatever else the machine did in them', () => {
    const { ratio, from, to } = comparisonOf(timing(noisy), timing(noisy.map((ms, at) => ms * (at % 2 === 0 ? 1.04 : 1.06))))
    expect(ratio).toBeGreaterThanOrEqual(1.04)
    expect([from, to].map((each) => each.toFixed(2))).toEqual(['1.04', '1.06'])
  })

  test('of a tree with itself holds 1', () => {
    const { from, to } = comparisonOf(timing(noisy), timing(noisy))
    expect([from, to]).toEqual([1, 1])
  })
})
