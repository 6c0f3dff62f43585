/** Checks the properties of every program of threads on random programs. */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { arrange, initialStates } from './check-program.ts'
import { createEngine } from './engine.ts'
import { replay } from './replay-steps.ts'
import { advance, bidsOf, blockersOf, EXTERNAL, explainBids, frontier, type Rejection, type Selection, select } from './select.ts'
import type { AnyThread, Bid, BThread, Pattern } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string; readonly n: number }
type State = { readonly at: number; readonly fuel: number }
type Loose = { type: string; id?: string; odd?: boolean }
type Row = { request: Ev[]; wait: Loose[]; block: Loose[]; interrupt: Loose[] }
type Plan = { priority: number; rows: Row[]; hops: number[]; constant: boolean }

const type = fc.constantFrom('a', 'b', 'c', 'd')
const id = fc.constantFrom(undefined, '1', '2')
const event: fc.Arbitrary<Ev> = fc.record({ type, id, n: fc.nat(2) })
const loose: fc.Arbitrary<Loose> = fc.record({ type, id, odd: fc.constantFrom(undefined, undefined, true, false) })
const list = <T>(of: fc.Arbitrary<T>, maxLength: number) => fc.array(of, { maxLength })
const row: fc.Arbitrary<Row> = fc.record({
  request: list(event, 3),
  wait: list(loose, 2),
  block: list(loose, 1),
  interrupt: list(loose, 1),
})
const plan: fc.Arbitrary<Plan> = fc.record({
  priority: fc.nat(2),
  rows: fc.array(row, { minLength: 1, maxLength: 3 }),
  hops: fc.array(fc.nat(2), { minLength: 1, maxLength: 4 }),
  constant: fc.boolean(),
})
const plans = fc.array(plan, { minLength: 1, maxLength: 6 })
const crowd = fc.array(plan, { minLength: 30, maxLength: 45, size: 'max' })
const batches = list(list(event, 4), 5)

const pattern = ({ type, id, odd }: Loose): Pattern<Ev> => ({
  type,
  id,
  ...(odd === undefined ? {} : { match: (event) => (event.n % 2 === 1) === odd }),
})
const bidOf = (row: Row, fuel: number): Bid<Ev> => ({
  ...(fuel > 0 ? { request: row.request } : {}),
  wait: row.wait.map(pattern),
  block: row.block.map(pattern),
  interrupt: row.interrupt.map(pattern),
})

/** A small automaton: it moves between its rows, and requests nothing more when its fuel is spent, so that every run ends. */
function threadOf({ priority, rows, hops, constant }: Plan, at: number): BThread<State, Ev> {
  const nothing: Row = { request: [], wait: [], block: [], interrupt: [] }
  const fixed = rows.map((row) => bidOf(row, 1))
  return {
    name: `t${at}`,
    priority,
    init: { at: 0, fuel: 6 },
    bid: ({ at, fuel }) => (constant && fuel > 0 ? (fixed[at] ?? {}) : bidOf(rows[at] ?? nothing, fuel)),
    next: ({ at, fuel }, event) => ({
      at: (at + (hops[(event.type.charCodeAt(0) + event.n) % hops.length] ?? 0)) % rows.length,
      fuel: fuel - 1,
    }),
  }
}
const threadsOf = (plans: Plan[]) => plans.map(threadOf)

type Log = { selected: Selection<Ev>[]; rejected: Rejection<Ev>[] }

function byEngine(threads: AnyThread<Ev>[], batches: Ev[][]): Log {
  const engine = createEngine({ threads })
  const log: Log = { selected: [], rejected: [] }
  for (const batch of [[], ...batches]) {
    for (const event of batch) engine.send(event)
    const step = engine.superstep()
    log.selected.push(...step.selected)
    log.rejected.push(...step.rejected)
  }
  return log
}

function byPureFunctions(given: AnyThread<Ev>[], externals: Ev[]): Log {
  const threads = arrange(given)
  const inbox = [...externals]
  const log: Log = { selected: [], rejected: [] }
  let states: ReturnType<typeof advance>['states'] = initialStates(threads)
  for (;;) {
    const bids = bidsOf(threads, states)
    const choice = select(bids, inbox[0])
    if (choice.type === 'quiescent') return log
    if (choice.type !== 'internal') inbox.shift()
    if (choice.type === 'rejected') {
      log.rejected.push({ event: choice.event, by: threads[choice.by]?.name ?? '' })
      continue
    }
    const moved = advance({ threads, states, bids, event: choice.event })
    states = moved.states
    const source = choice.type === 'internal' ? (threads[choice.thread]?.name ?? '') : EXTERNAL
    log.selected.push({ event: choice.event, source, advanced: moved.advanced.map((place) => threads[place]?.name ?? '') })
  }
}

/** Implements the semantics again from their description alone, sharing no code with the kernel. */
function byTheWords(given: AnyThread<Ev>[], externals: Ev[]): Log {
  const table = given.map((thread, registered) => ({ thread, registered, state: thread.init }))
  table.sort((a, b) => a.thread.priority - b.thread.priority || a.registered - b.registered)
  const fits = (patterns: readonly Pattern<Ev>[] = [], e: Ev) =>
    patterns.some((p) => p.type === e.type && (p.id === undefined || p.id === e.id) && (p.match?.(e) ?? true))
  const log: Log = { selected: [], rejected: [] }
  const queue = [...externals]
  for (;;) {
    const now = table.map((seat) => ({ seat, bid: seat.thread.bid(seat.state) }))
    const blocker = (e: Ev) => now.find(({ bid }) => fits(bid.block, e))?.seat.thread.name
    const asked = now.flatMap(({ seat, bid }) => (bid.request ?? []).map((e) => ({ e, source: seat.thread.name })))
    let chosen = asked.find(({ e }) => blocker(e) === undefined)
    if (chosen === undefined) {
      const e = queue.shift()
      if (e === undefined) return log
      const by = blocker(e)
      if (by !== undefined) {
        log.rejected.push({ event: e, by })
        continue
      }
      chosen = { e, source: 'external' }
    }
    const { e, source } = chosen
    const moving = now.filter(
      ({ bid }) =>
        (bid.request ?? []).some((r) => r.type === e.type && r.id === e.id) || fits([...(bid.wait ?? []), ...(bid.interrupt ?? [])], e),
    )
    for (const { seat } of moving) seat.state = seat.thread.next(seat.state, e)
    log.selected.push({ event: e, source, advanced: moving.map(({ seat }) => seat.thread.name) })
  }
}

describe('any program', () => {
  test('does in the engine exactly what the pure functions and the words say', () => {
    fc.assert(
      fc.property(plans, batches, (plans, batches) => {
        const log = byEngine(threadsOf(plans), batches)
        expect(log).toEqual(byPureFunctions(threadsOf(plans), batches.flat()))
        expect(log).toEqual(byTheWords(threadsOf(plans), batches.flat()))
      }),
      { numRuns: 500 },
    )
  })

  test('does so too in a crowd, where the index forgets threads that moved on', () => {
    fc.assert(
      fc.property(crowd, batches, (plans, batches) => {
        expect(byEngine(threadsOf(plans), batches)).toEqual(byTheWords(threadsOf(plans), batches.flat()))
      }),
      { numRuns: 60 },
    )
  })

  test('never selects an event that a thread blocks at that moment, and always the first of the frontier', () => {
    fc.assert(
      fc.property(plans, batches, (plans, batches) => {
        const threads = arrange(threadsOf(plans))
        const engine = createEngine<Ev>({
          threads,
          trace: ({ event, source }) => {
            const states = engine.states()
            const bids = threads.map((thread) => thread.bid(states[thread.name]))
            expect(blockersOf(bids, event)).toEqual([])
            const first = frontier(bids)[0]
            expect(source === EXTERNAL ? undefined : event).toBe(first?.event)
          },
        })
        for (const event of batches.flat()) engine.send(event)
        engine.superstep()
      }),
    )
  })

  test('has the same selections twice, and however its external events were batched', () => {
    fc.assert(
      fc.property(plans, batches, (plans, batches) => {
        const once = byEngine(threadsOf(plans), batches)
        expect(byEngine(threadsOf(plans), batches)).toEqual(once)
        expect(byEngine(threadsOf(plans), [batches.flat()])).toEqual(once)
      }),
    )
  })

  test('can do nothing more when a thread is added that only blocks', () => {
    fc.assert(
      fc.property(
        plans,
        batches,
        fc.nat(3),
        list(loose, 3),
        fc.array(event, { maxLength: 5 }),
        (plans, batches, priority, blocks, offers) => {
          const threads = arrange(threadsOf(plans))
          const veto: AnyThread<Ev> = {
            name: 'veto',
            priority,
            init: 0,
            bid: () => ({ block: blocks.map(pattern) }),
            next: (state) => state,
          }
          const engine = createEngine<Ev>({
            threads,
            trace: () => {
              const states = engine.states()
              const alone = threads.map((thread) => thread.bid(states[thread.name]))
              const joined = [veto.bid(0), ...alone]
              const before = frontier(alone).map(({ event }) => event)
              for (const { event } of frontier(joined)) expect(before).toContain(event)
              for (const event of offers) if (blockersOf(alone, event).length > 0) expect(blockersOf(joined, event)).not.toEqual([])
            },
          })
          for (const event of batches.flat()) engine.send(event)
          engine.superstep()
          const held = byEngine([...threads, veto], batches).selected
          for (const { event } of held) expect(blockersOf([veto.bid(0)], event)).toEqual([])
        },
      ),
    )
  })

  test('has identical selections when it is replayed from its journal', () => {
    fc.assert(
      fc.property(plans, batches, (plans, batches) => {
        const journal: string[] = []
        const engine = createEngine<Ev>({ threads: threadsOf(plans), onExternal: (event) => journal.push(JSON.stringify(event)) })
        for (const event of batches.flat()) engine.send(event)
        const live = engine.superstep()
        const again = replay<Ev>({ threads: threadsOf(plans), externals: journal.map((line) => JSON.parse(line)) })
        expect(again).toEqual({ ...live, rejected: [] })
      }),
    )
  })

  test('goes on from a stored snapshot as if it had never stopped', () => {
    fc.assert(
      fc.property(plans, batches, batches, (plans, before, after) => {
        const engine = createEngine<Ev>({ threads: threadsOf(plans) })
        for (const event of before.flat()) engine.send(event)
        engine.superstep()
        const second = createEngine<Ev>({ threads: threadsOf(plans) })
        second.superstep()
        second.restore(JSON.parse(JSON.stringify(engine.states())))
        for (const event of after.flat()) for (const one of [engine, second]) one.send(event)
        expect(second.superstep()).toEqual(engine.superstep())
      }),
    )
  })

  test('explains every request that is left, as the pure function does', () => {
    fc.assert(
      fc.property(fc.oneof(plans, crowd), batches, (plans, batches) => {
        const threads = arrange(threadsOf(plans))
        const engine = createEngine<Ev>({ threads })
        for (const event of batches.flat()) engine.send(event)
        const { blocked } = engine.superstep()
        const states = engine.states()
        const bids = threads.map((thread) => thread.bid(states[thread.name]))
        expect(blocked).toEqual(explainBids(threads, bids))
        expect(blocked.length).toBe(bids.reduce((sum, bid) => sum + (bid.request?.length ?? 0), 0))
        expect(engine.explain()).toEqual([...blocked])
      }),
    )
  })
})
