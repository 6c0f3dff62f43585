/** Compares the bid index with an engine that evaluates every bid at every step, over random changing bids. */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createBidIndex, type ThreadSlot } from './bid-index.ts'
import { arrange, initialStates } from './check-program.ts'
import { createEngine, type Engine } from './engine.ts'
import type { AnyThread, Bid, Pattern } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string; readonly n: number }

const type = fc.constantFrom('a', 'a', 'b')
/** A few ids that often coincide, and many that fill the index. */
const id = fc.oneof(fc.constantFrom(undefined, '1', '2'), fc.nat(60).map(String))
const event: fc.Arbitrary<Ev> = fc.record({ type, id, n: fc.nat(3) })
const pattern: fc.Arbitrary<Pattern<Ev>> = fc
  .record({ type, id, odd: fc.constantFrom(undefined, undefined, 0, 1) })
  .map(({ type, id, odd }) => ({ type, id, ...(odd === undefined ? {} : { match: ({ n }: Ev) => n % 2 === odd }) }))
const list = <T>(of: fc.Arbitrary<T>) => fc.option(fc.array(of, { maxLength: 4 }), { nil: undefined })
const bid: fc.Arbitrary<Bid<Ev>> = fc.record({ request: list(event), wait: list(pattern), block: list(pattern), interrupt: list(pattern) })

/** Implements the semantics from their description alone, sharing no code with the kernel. */
const fits = (patterns: readonly Pattern<Ev>[] | undefined, e: Ev) =>
  (patterns ?? []).some((p) => p.type === e.type && (p.id === undefined || p.id === e.id) && (p.match?.(e) ?? true))
const hears = ({ request, wait, interrupt }: Bid<Ev>, e: Ev) =>
  (request ?? []).some((r) => r.type === e.type && r.id === e.id) || fits(wait, e) || fits(interrupt, e)
const everyBlocker = (bids: readonly Bid<Ev>[], e: Ev) => bids.flatMap(({ block }, place) => (fits(block, e) ? [place] : []))
const asked = (bids: readonly Bid<Ev>[]) => bids.flatMap(({ request }, place) => (request ?? []).map((event) => ({ place, event })))
const firstEnabled = (bids: readonly Bid<Ev>[]) => asked(bids).find(({ event }) => everyBlocker(bids, event).length === 0)
const stranded = (bids: readonly Bid<Ev>[]) =>
  asked(bids).flatMap(({ place, event }) => {
    const by = everyBlocker(bids, event).map((at) => `t${at}`)
    return by.length === 0 ? [] : [{ thread: `t${place}`, event, by }]
  })

/** Generates the next bid: a new one, or an earlier one with parts kept, reordered or replaced. */
type Change = { readonly at: number; readonly how: 'new' | 'copy' | 'part' | 'reverse' | 'same request'; readonly bid: Bid<Ev> }
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(200),
  how: fc.constantFrom('new', 'new', 'copy', 'part', 'reverse', 'same request'),
  bid,
})

function changed(before: Bid<Ev>, { how, bid }: Change): Bid<Ev> {
  if (how === 'new') return bid
  if (how === 'same request') return { ...bid, request: before.request }
  const edit = <T>(items: readonly T[] | undefined) => {
    if (how === 'part') return items?.filter((_, at) => at !== 1)
    return how === 'reverse' ? items?.toReversed() : items && [...items]
  }
  return { request: edit(before.request), wait: edit(before.wait), block: edit(before.block), interrupt: edit(before.interrupt) }
}

describe('the board', () => {
  test.each([
    ['a few threads', { minLength: 1, maxLength: 6 }, 300],
    ['a crowd', { minLength: 40, maxLength: 60, size: 'max' as const }, 60],
  ])('answers as if it looked at every bid: %s', (_, size, numRuns) => {
    const steps = fc.array(fc.tuple(fc.array(change, { maxLength: 4 }), fc.array(event, { maxLength: 3 })), { maxLength: 40, size: 'max' })
    fc.assert(
      fc.property(fc.array(bid, size), steps, (first, steps) => {
        const bids = [...first]
        const threads = bids.map((bid, at): AnyThread<Ev> => ({ name: `t${at}`, priority: 0, init: 0, bid: () => bid, next: (n) => n }))
        const board = createBidIndex(threads, initialStates(threads))
        for (const [changes, events] of [[[], []] as (typeof steps)[number], ...steps]) {
          for (const change of changes) {
            const at = change.at % bids.length
            const next = changed(bids[at] ?? {}, change)
            bids[at] = next
            const slot = board.slots[at]
            if (slot !== undefined) board.place(slot, next)
          }
          const slot = board.enabled()
          expect(slot && { place: slot.place, event: slot.candidate }).toEqual(firstEnabled(bids))
          expect(board.explain()).toEqual(stranded(bids))
          const candidate = slot?.candidate
          for (const each of candidate === undefined ? events : [...events, candidate]) {
            expect(board.blocker(each)?.place).toBe(everyBlocker(bids, each)[0])
            const moving: ThreadSlot<Ev>[] = []
            const count = board.collect(each, moving)
            const places = bids.flatMap((bid, place) => (hears(bid, each) ? [place] : []))
            expect(moving.slice(0, count).map(({ place }) => place)).toEqual(places)
          }
        }
      }),
      { numRuns },
    )
  })
})

type Plan = { readonly priority: number; readonly bids: readonly Bid<Ev>[]; readonly fresh: boolean }
type State = { readonly at: number; readonly fuel: number }
const plan: fc.Arbitrary<Plan> = fc.record({
  priority: fc.nat(2),
  bids: fc.array(bid, { minLength: 1, maxLength: 3 }),
  fresh: fc.boolean(),
})

/** Cycles through its bids, and requests nothing more when its fuel is spent, so that every run ends. */
const threadOf = ({ priority, bids, fresh }: Plan, at: number): AnyThread<Ev> => ({
  name: `t${at}`,
  priority,
  init: { at: 0, fuel: 5 },
  bid: ({ at, fuel }: State) => {
    const bid = bids[at % bids.length] ?? {}
    if (fuel <= 0) return { ...bid, request: undefined }
    return fresh ? { ...bid, request: bid.request?.map((event) => ({ ...event })), block: bid.block?.map((each) => ({ ...each })) } : bid
  },
  next: ({ at, fuel }: State, { n }) => ({ at: at + n, fuel: fuel - 1 }),
})

type Outcomes = { selected: unknown[]; rejected: unknown[]; blocked: unknown[] }

/** An engine that keeps nothing but states and asks every thread for its bid at every step. */
function naive(given: readonly AnyThread<Ev>[]) {
  const threads = arrange(given)
  let states: State[] = threads.map(({ init }) => init)
  const name = (place: number) => threads[place]?.name
  function run(externals: readonly Ev[]): Outcomes {
    const told: Outcomes = { selected: [], rejected: [], blocked: [] }
    const inbox = [...externals]
    for (;;) {
      const bids = threads.map((thread, place) => thread.bid(states[place]))
      const inner = firstEnabled(bids)
      const event = inner?.event ?? inbox.shift()
      if (event === undefined) {
        const left = asked(bids).map(({ place, event }) => ({ thread: name(place), event, by: everyBlocker(bids, event).map(name) }))
        return { ...told, blocked: left }
      }
      const by = everyBlocker(bids, event)[0]
      if (by !== undefined) {
        told.rejected.push({ event, by: name(by) })
        continue
      }
      const moving = bids.map((bid) => hears(bid, event))
      states = states.map((state, place) => (moving[place] ? threads[place]?.next(state, event) : state))
      const advanced = threads.flatMap((thread, place) => (moving[place] ? [thread.name] : []))
      told.selected.push({ event, source: inner === undefined ? 'external' : name(inner.place), advanced })
    }
  }
  const named = () => Object.fromEntries(threads.map((thread, place) => [thread.name, states[place]]))
  return {
    run,
    states: named,
    restore: (to: Record<string, State | undefined>) => (states = threads.map(({ name }) => to[name] ?? { at: 0, fuel: 0 })),
  }
}

type Step = { readonly send: readonly Ev[] } | { readonly back: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ send: fc.array(event, { maxLength: 6 }) }) },
  fc.record({ back: fc.nat(20) }),
)

describe('the engine', () => {
  test.each([
    ['a few threads', { minLength: 1, maxLength: 6 }, 300],
    ['a crowd', { minLength: 30, maxLength: 40, size: 'max' as const }, 60],
  ])('does what one without an index does, also when it is put back to earlier states: %s', (_, size, numRuns) => {
    fc.assert(
      fc.property(fc.array(plan, size), fc.array(step, { maxLength: 12 }), (plans, steps) => {
        const engine: Engine<Ev> = createEngine({ threads: plans.map(threadOf) })
        const plain = naive(plans.map(threadOf))
        const stored = [{ theirs: engine.states(), ours: plain.states() }]
        for (const step of steps) {
          const from = 'back' in step ? stored[step.back % stored.length] : undefined
          if (from !== undefined) {
            engine.restore(from.theirs)
            plain.restore(from.ours)
          }
          const events = 'send' in step ? step.send : []
          for (const event of events) engine.send(event)
          expect<unknown>(engine.superstep()).toEqual(plain.run(events))
          stored.push({ theirs: engine.states(), ours: plain.states() })
          expect<unknown>(engine.states()).toEqual(plain.states())
        }
      }),
      { numRuns },
    )
  })
})
