/** How many events a second `braidclaw stdio` writes, and how soon after its start the first one comes; for a program that reads them all. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CHUNKS = 20_000
const RUNS = 5
/** BRAIDCLAW_TEST_BINARY selects a compiled executable. */
const executable = process.env.BRAIDCLAW_TEST_BINARY || join(import.meta.dir, '../bin/braidclaw')

type Run = { readonly firstMs: number; readonly perSecond: number }

async function run(home: string, fixture: string): Promise<Run> {
  const began = performance.now()
  const env = { HOME: home, PATH: process.env.PATH ?? '', BRAIDCLAW_MOCK_FIXTURE: fixture }
  const child = Bun.spawn([executable, 'stdio', '--quiet'], { cwd: home, env, stdin: 'pipe', stdout: 'pipe' })
  child.stdin.write('{"prompt":"x"}\n')
  child.stdin.end()
  let [first, events] = [0, 0]
  for await (const piece of child.stdout) {
    if (first === 0) first = performance.now()
    for (const byte of piece) if (byte === 10) events += 1
  }
  const seconds = (performance.now() - first) / 1_000
  if (events < CHUNKS) throw new Error(`${events} events came; ${CHUNKS} are the least`)
  return { firstMs: first - began, perSecond: events / seconds }
}

const home = mkdtempSync(join(tmpdir(), 'braidclaw-bench-stdio-'))
const fixture = join(home, 'fixture.json')
writeFileSync(fixture, JSON.stringify({ responses: [{ text: 'word '.repeat(CHUNKS), chunks: CHUNKS }] }))
const runs: Run[] = []
for (let count = 0; count < RUNS; count++) runs.push(await run(home, fixture))
rmSync(home, { recursive: true, force: true })
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[RUNS >> 1] ?? Number.NaN
const figures = {
  events_per_s: Math.round(median(runs.map(({ perSecond }) => perSecond))),
  first_event_ms: median(runs.map(({ firstMs }) => firstMs)),
}
if (process.argv.includes('--json')) console.log(JSON.stringify({ bench: 'stdio', runs: RUNS, ...figures }))
else console.log(`${figures.events_per_s.toLocaleString('en')} events/s, the first after ${figures.first_event_ms.toFixed(0)} ms`)
