/** Kernel throughput: events per second with few and with many threads, and one very long chain. `--json` prints the figures alone. */

import { createEngine, type Engine } from '../src/kernel/engine.ts'
import type { AnyThread, BThread } from '../src/kernel/thread.ts'

type Tick = { readonly type: string; readonly id?: string; readonly n: number }
type Row = { readonly name: string; readonly events: number; readonly perSecond: number; readonly need: number }

const EVENTS = 200_000
const RUNS = 7

const threads = (count: number, make: (at: number) => AnyThread<Tick>) => Array.from({ length: count }, (_, at) => make(at))

/** Passes one token round: requests its own event when it has the token, else waits for its neighbour's. Every bid is built anew. */
function passer(at: number, of: number, laps: number): BThread<{ n: number; mine: boolean }, Tick> {
  const own = `pass${at}`
  const before = `pass${(at + of - 1) % of}`
  return {
    name: own,
    priority: at,
    init: { n: 0, mine: at === 0 },
    bid: ({ n, mine }) => {
      if (n === laps) return {}
      return mine ? { request: [{ type: own, n }] } : { wait: [{ type: before }] }
    },
    next: ({ n, mine }) => (mine ? { n: n + 1, mine: false } : { n, mine: true }),
  }
}

/** Counts to `to` alone. */
const counter = (to: number): BThread<number, Tick> => ({
  name: 'counter',
  priority: 50,
  init: 0,
  bid: (n) => (n < to ? { request: [{ type: 'tick', n }] } : {}),
  next: (n) => n + 1,
})

/** Waits for its own event, which never comes, and blocks another. */
const idler = (at: number): BThread<number, Tick> => ({
  name: `idle${at}`,
  priority: 10,
  init: 0,
  bid: () => ({ wait: [{ type: `never${at}` }], block: [{ type: `nothing${at}` }] }),
  next: (n) => n + 1,
})

/** Moves on every tick and bids anew each time. */
const follower = (at: number): BThread<number, Tick> => ({
  name: `follower${at}`,
  priority: 60,
  init: 0,
  bid: () => ({ wait: [{ type: 'tick' }], block: [{ type: 'tock' }] }),
  next: (n) => n + 1,
})

const ring = (of: number) => threads(of, (at) => passer(at, of, EVENTS / of))

const programs: readonly { readonly name: string; readonly need: number; readonly list: () => AnyThread<Tick>[] }[] = [
  { name: '10 threads, a token goes round', need: 3_000_000, list: () => ring(10) },
  { name: '10 threads, one counts, nine wait elsewhere', need: 3_000_000, list: () => [counter(EVENTS), ...threads(9, idler)] },
  { name: '10 threads and 1,000 idle', need: 1_000_000, list: () => [...ring(10), ...threads(1000, idler)] },
  { name: '10 threads, all move on every event', need: 0, list: () => [counter(EVENTS), ...threads(9, follower)] },
  { name: 'one chain of 200,000 events', need: 0, list: () => [counter(EVENTS)] },
]

const lean = (engine: Engine<Tick>) => {
  let count = 0
  engine.superstep(() => {
    count += 1
  })
  return count
}
const recorded = (engine: Engine<Tick>) => engine.superstep().selected.length

function best(make: () => AnyThread<Tick>[], run: (engine: Engine<Tick>) => number): { events: number; perSecond: number } {
  let perSecond = 0
  let events = 0
  for (let at = 0; at < RUNS; at++) {
    const engine = createEngine({ threads: make(), maxSelections: EVENTS })
    const start = performance.now()
    events = run(engine)
    perSecond = Math.max(perSecond, (events / (performance.now() - start)) * 1000)
  }
  return { events, perSecond: Math.round(perSecond) }
}

const rows: Row[] = programs.flatMap(({ name, need, list }) => [
  { name, need, ...best(list, lean) },
  { name: `${name} (recorded)`, need: 0, ...best(list, recorded) },
])

if (process.argv.includes('--json')) console.log(JSON.stringify({ bench: 'kernel', runs: RUNS, rows }))
else
  for (const row of rows)
    console.log(`${(row.perSecond / 1e6).toFixed(2).padStart(7)} M/s  ${row.name}${row.need ? `  (need ${row.need / 1e6})` : ''}`)
