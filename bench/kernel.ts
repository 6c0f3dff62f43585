/** Kernel throughput: events per second, the median of several runs, with few and with many threads. `--json` prints the figures alone. */

import { createEngine, type Engine } from '../src/kernel/engine.ts'
import type { AnyThread, Bid, BThread } from '../src/kernel/thread.ts'
import { behavioral, bSync, bThread } from '../src/library/behavioral.ts'

type Tick = { readonly type: string; readonly id?: string; readonly n: number }
type Row = { readonly name: string; readonly events: number; readonly perSecond: number; readonly need: number }

const EVENTS = 200_000
const RUNS = 7

const threads = (count: number, make: (at: number) => AnyThread<Tick>) => Array.from({ length: count }, (_, at) => make(at))

type Name = { readonly type: string; readonly id?: string }

/** Passes one token round: requests its own event when it has the token, else waits for its neighbour's. Every bid is built anew. */
function passer(at: number, of: number, nameOf: (at: number) => Name): BThread<{ n: number; mine: boolean }, Tick> {
  const own = nameOf(at)
  const before = nameOf((at + of - 1) % of)
  const laps = EVENTS / of
  return {
    name: `passer${at}`,
    priority: at,
    init: { n: 0, mine: at === 0 },
    bid: ({ n, mine }) => {
      if (n === laps) return {}
      return mine ? { request: [{ ...own, n }] } : { wait: [{ ...before }] }
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

/** Always makes the same bid, and is asked before the threads that do something. */
const still = (name: string, bid: Bid<Tick>): BThread<number, Tick> => ({ name, priority: -1, init: 0, bid: () => bid, next: (n) => n + 1 })

const waiter = (at: number) => still(`waiter${at}`, { wait: [{ type: 'pass', id: `other${at}` }] })
const blocker = (at: number) => still(`blocker${at}`, { block: [{ type: 'pass', id: `other${at}` }] })
/** Requests what another thread blocks. */
const blocked = (at: number) => still(`blocked${at}`, { request: [{ type: 'held', id: `other${at}`, n: at }] })
const veto = still('veto', { block: [{ type: 'held' }] })

const ring = (of: number) => threads(of, (at) => passer(at, of, (at) => ({ type: `pass${at}` })))
/** The same, but all events have one type and are told apart by their ids. */
const ringOfIds = (of: number) => threads(of, (at) => passer(at, of, (at) => ({ type: 'pass', id: `${at}` })))

const programs: readonly { readonly name: string; readonly need: number; readonly list: () => AnyThread<Tick>[] }[] = [
  { name: '10 threads, a token goes round', need: 3_000_000, list: () => ring(10) },
  { name: '10 threads, one counts, nine wait elsewhere', need: 3_000_000, list: () => [counter(EVENTS), ...threads(9, idler)] },
  { name: '10 threads and 1,000 idle', need: 1_000_000, list: () => [...ring(10), ...threads(1000, idler)] },
  { name: '10 threads, one type, ids tell the events apart', need: 0, list: () => ringOfIds(10) },
  { name: '10 threads and 1,000 that wait for other ids', need: 1_000_000, list: () => [...ringOfIds(10), ...threads(1000, waiter)] },
  { name: '10 threads and 1,000 that block other ids', need: 1_000_000, list: () => [...ringOfIds(10), ...threads(1000, blocker)] },
  { name: '10 threads and 1,000 blocked requests', need: 1_000_000, list: () => [...ringOfIds(10), veto, ...threads(1000, blocked)] },
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

function median(make: () => AnyThread<Tick>[], run: (engine: Engine<Tick>) => number): { events: number; perSecond: number } {
  const speeds: number[] = []
  let events = 0
  for (let at = 0; at < RUNS; at++) {
    const engine = createEngine({ threads: make(), maxSelections: EVENTS })
    const start = performance.now()
    events = run(engine)
    speeds.push((events / (performance.now() - start)) * 1000)
  }
  speeds.sort((a, b) => a - b)
  return { events, perSecond: Math.round(speeds[(RUNS - 1) / 2] ?? 0) }
}

/** Two threads that take turns, as threads of the kernel. */
const turns = () => ring(2)

/** The same as a behavioral program of the library, with a handler for each event. */
function behavioralTurns(): number {
  const count = EVENTS / 10
  const { bThreads, trigger, useFeedback } = behavioral({ maxSelections: count + 1 })
  const pass = (own: string, other: string) => [bSync({ request: { type: own } }), bSync({ waitFor: other })]
  bThreads.set({ ping: bThread(pass('ping', 'pong'), count / 2), pong: bThread(pass('pong', 'ping').reverse(), count / 2) })
  const seen = { count: 0 }
  const handle = () => {
    seen.count += 1
  }
  useFeedback({ ping: handle, pong: handle })
  trigger({ type: 'start' })
  return seen.count
}

const rows: Row[] = programs.flatMap(({ name, need, list }) => [
  { name, need, ...median(list, lean) },
  { name: `${name} (recorded)`, need: 0, ...median(list, recorded) },
])
rows.push({ name: 'two threads take turns', need: 0, ...median(turns, lean) })
rows.push({ name: 'two threads take turns, as a behavioral program with handlers', need: 0, ...median(turns, behavioralTurns) })

if (process.argv.includes('--json')) console.log(JSON.stringify({ bench: 'kernel', runs: RUNS, rows }))
else
  for (const row of rows)
    console.log(`${(row.perSecond / 1e6).toFixed(2).padStart(7)} M/s  ${row.name}${row.need ? `  (need ${row.need / 1e6})` : ''}`)
