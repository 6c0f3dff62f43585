import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { canonical } from '../kit/json.ts'
import { createEngine } from './engine.ts'
import type { Property } from './explore.ts'
import { type Exploration, type ExploreOptions, explore, LIVELOCK } from './explore.ts'
import { replay } from './replay-steps.ts'
import { label } from './select.ts'
import type { AnyThread, Bid, BThread } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string }

const nothing = { init: null, next: () => null }
const never = (type: string): Property<Ev, boolean> => ({
  name: `never ${type}`,
  init: false,
  next: (seen, { event }) => seen || event.type === type,
  violated: (seen) => seen,
})
const check = (options: Partial<ExploreOptions<Ev, unknown>>): Exploration<Ev> =>
  explore<Ev, unknown>({ threads: [], environment: () => [], history: nothing, properties: [], ...options })
const traceOf = (found: Exploration<Ev>) => (found.outcome === 'violated' ? found.trace.map(({ event }) => label(event)) : found.outcome)

/** Cycles through bids; stays at the last. */
const steps = (name: string, ...bids: Bid<Ev>[]): BThread<number, Ev> => ({
  name,
  priority: 0,
  init: 0,
  bid: (at) => bids[at] ?? {},
  next: (at) => at + 1,
})

/** Requests an act on `propose`; the guard, if present, blocks the act until `allow`. */
const actor: BThread<string, Ev> = {
  name: 'actor',
  priority: 50,
  init: 'idle',
  bid: (state) => (state === 'idle' ? { wait: [{ type: 'propose' }] } : { request: [{ type: 'act' }] }),
  next: (state) => (state === 'idle' ? 'ready' : 'idle'),
}
const guard: BThread<string, Ev> = {
  name: 'guard',
  priority: 10,
  init: 'closed',
  bid: (state) => (state === 'closed' ? { block: [{ type: 'act' }], wait: [{ type: 'allow' }] } : { wait: [{ type: 'act' }] }),
  next: (state) => (state === 'closed' ? 'open' : 'closed'),
}
const onlyAllowed: Property<Ev, { allowed: boolean; broken: boolean }> = {
  name: 'acts only when allowed',
  init: { allowed: false, broken: false },
  next: ({ allowed, broken }, { event }) => ({
    allowed: event.type === 'allow' || (allowed && event.type !== 'act'),
    broken: broken || (event.type === 'act' && !allowed),
  }),
  violated: ({ broken }) => broken,
}
const world = () => [{ type: 'noise' }, { type: 'allow' }, { type: 'propose' }]

describe('a property that breaks', () => {
  test('has a shortest counterexample, and the engine does the very same', () => {
    const found = check({ threads: [actor], environment: world, properties: [onlyAllowed] })
    if (found.outcome !== 'violated') throw new Error(found.outcome)
    expect(found.property).toBe('acts only when allowed')
    expect(found.trace.map(({ event }) => label(event))).toEqual(['propose', 'act'])
    const externals = found.trace.filter(({ source }) => source === 'external').map(({ event }) => event)
    expect(replay({ threads: [actor], externals }).selected).toEqual([...found.trace])
  })

  test('before anything happens has an empty one', () => {
    const broken: Property<Ev> = { name: 'broken', init: null, next: () => null, violated: () => true }
    expect(check({ properties: [broken] })).toEqual({ outcome: 'violated', property: 'broken', trace: [], states: 1, transitions: 0 })
  })

  test('is found at rest when a shorter way leads there than to one that breaks on the way', () => {
    const stuck: Property<Ev, number> = { name: 'stuck', init: 0, next: (n) => n + 1, atQuiescence: (n) => n === 1 }
    const environment = () => [{ type: 'go' }, { type: 'bad' }]
    const slow = steps('slow', { wait: [{ type: 'go' }] }, { request: [{ type: 'worse' }] })
    const found = check({ threads: [slow], environment, properties: [stuck, never('worse')] })
    expect(traceOf(found)).toEqual(['bad'])
  })

  test('at rest sees the states, who is stranded, and only those offers that the program takes', () => {
    const rests: unknown[] = []
    const seer: Property<Ev> = { name: 'seer', init: null, next: () => null, atQuiescence: (_, rest) => rests.push(rest) > 0 }
    const threads = [steps('stranded', { request: [{ type: 'think' }] }), steps('veto', { block: [{ type: 'think' }, { type: 'late' }] })]
    check({ threads, environment: () => [{ type: 'late' }, { type: 'ok' }], properties: [seer] })
    const blocked = [{ thread: 'stranded', event: { type: 'think' }, by: ['veto'] }]
    expect(rests).toEqual([{ states: { stranded: 0, veto: 0 }, blocked, offers: [{ type: 'ok' }] }])
  })

  test('is a livelock, in a circle of states', () => {
    const ping: BThread<boolean, Ev> = {
      name: 'ping',
      priority: 0,
      init: true,
      bid: (on) => ({ request: [{ type: on ? 'a' : 'b' }] }),
      next: (on) => !on,
    }
    expect(check({ threads: [ping] })).toMatchObject({ outcome: 'violated', property: LIVELOCK, states: 2 })
    const late = {
      ...ping,
      bid: (on: boolean): Bid<Ev> => (on ? { wait: [{ type: 'start' }] } : { request: [{ type: 'b', id: 'again' }] }),
      next: () => false,
    }
    expect(traceOf(check({ threads: [late], environment: () => [{ type: 'start' }] }))).toEqual(['start', 'b#again'])
  })

  test('is a livelock, in a chain without end', () => {
    const endless: BThread<number, Ev> = {
      name: 'endless',
      priority: 0,
      init: 0,
      bid: () => ({ request: [{ type: 'on' }] }),
      next: (n) => n + 1,
    }
    expect(check({ threads: [endless], maxSelections: 20 })).toMatchObject({ outcome: 'violated', property: LIVELOCK, states: 21 })
  })
})

describe('a property that holds', () => {
  test('holds over every run, told by the number of states and transitions', () => {
    const found = check({ threads: [actor, guard], environment: world, properties: [onlyAllowed] })
    expect(found).toEqual({ outcome: 'holds', states: 4, transitions: 10 })
    expect(check({ threads: [actor, guard], environment: world, properties: [onlyAllowed] })).toEqual(found)
  })

  test('is no livelock because many external events each have a consequence', () => {
    const echo = steps(
      'echo',
      ...Array.from({ length: 40 }, (_, at): Bid<Ev> => (at % 2 ? { request: [{ type: 'y' }] } : { wait: [{ type: 'x' }] })),
    )
    expect(check({ threads: [echo], environment: () => [{ type: 'x' }], maxSelections: 3 })).toMatchObject({ outcome: 'holds', states: 41 })
  })

  test('is not proved when the bound on states cut the search', () => {
    const found = check({ threads: [actor, guard], environment: world, properties: [onlyAllowed], maxStates: 3 })
    expect(found).toMatchObject({ outcome: 'bounded', states: 3 })
    expect(() => check({ maxStates: 0 })).toThrow('maxStates')
  })

  test('visits states, not runs: a program that forgets is finite however long it runs', () => {
    const toggle: BThread<boolean, Ev> = {
      name: 'toggle',
      priority: 0,
      init: false,
      bid: () => ({ wait: [{ type: 'noise' }] }),
      next: (on) => !on,
    }
    expect(check({ threads: [toggle], environment: world })).toEqual({ outcome: 'holds', states: 2, transitions: 6 })
  })

  test('visits no state twice because its keys come in another order', () => {
    const pair = (n: number) => (n === 1 ? { a: 1, b: 1 } : { b: 1, a: 1 })
    const fickle: BThread<object, Ev> = {
      name: 'fickle',
      priority: 0,
      init: pair(1),
      bid: () => ({ wait: [{ type: 'noise' }, { type: 'allow' }] }),
      next: (_, event) => pair(event.type === 'noise' ? 1 : 2),
    }
    expect(check({ threads: [fickle], environment: world }).states).toBe(1)
  })

  test('lets a coarser key take states together', () => {
    const clock: BThread<number, Ev> = {
      name: 'clock',
      priority: 0,
      init: 0,
      bid: () => ({ wait: [{ type: 'noise' }] }),
      next: (n) => n + 1,
    }
    const key = (states: { readonly [name: string]: unknown }) => `${Number(states.clock) % 3}`
    expect(check({ threads: [clock], environment: world, key }).states).toBe(3)
    expect(check({ threads: [clock], environment: world, maxStates: 50 }).outcome).toBe('bounded')
  })

  test('asks the environment with what it remembers', () => {
    const history = { init: 0, next: (sent: number) => Math.min(sent + 1, 2) }
    const found = explore<Ev, number>({ threads: [], environment: (_, sent) => (sent < 2 ? [{ type: 'x' }] : []), history, properties: [] })
    expect(found).toEqual({ outcome: 'holds', states: 3, transitions: 2 })
  })
})

describe('a proof is not spoiled', () => {
  test('by a thread that changes its state in place', () => {
    const list: BThread<string[], Ev> = {
      name: 'list',
      priority: 0,
      init: [],
      bid: () => ({ wait: [{ type: 'noise' }] }),
      next: (seen) => {
        seen.push('x')
        return seen
      },
    }
    expect(() => check({ threads: [list], environment: world })).toThrow(TypeError)
    expect(list.init).toEqual([])
    const second: BThread<{ seen: string[] }, Ev> = {
      ...steps('second', { wait: [{ type: 'noise' }] }),
      init: { seen: [] },
      bid: () => ({ wait: [{ type: 'noise' }] }),
      next: ({ seen }) => {
        if (seen.length === 0) return { seen: ['x'] }
        seen.push('y')
        return { seen }
      },
    }
    expect(() => check({ threads: [second], environment: world })).toThrow(TypeError)
  })

  test('by a state that JSON cannot tell from another', () => {
    const sets: AnyThread<Ev> = { ...steps('sets', { wait: [{ type: 'noise' }] }), next: () => ({ seen: new Set() }) }
    expect(() => check({ threads: [sets], environment: world })).toThrow('thread "sets": state after noise.seen is a Set')
    const gone: AnyThread<Ev> = { ...sets, next: () => undefined }
    expect(() => check({ threads: [gone], environment: world })).toThrow('thread "sets": state after noise is undefined')
    const monitor: Property<Ev> = { name: 'P1', init: null, next: () => new Map() }
    expect(() => check({ environment: world, properties: [monitor] })).toThrow('property "P1": monitor is a Map')
    expect(() => check({ environment: world, history: { init: null, next: () => 1n } })).toThrow('history is bigint')
  })
})

test('every random program rests in exactly the states in which the engine rests', () => {
  const event = fc.record({ type: fc.constantFrom('a', 'b', 'c') })
  const few = (maxLength: number) => fc.array(event, { maxLength })
  const bid = fc.record({ request: few(1), wait: few(2), block: few(1) })
  const cycles = fc.array(fc.array(bid, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 })
  const offers: Ev[] = [{ type: 'a' }, { type: 'b' }]
  const depth = 3
  fc.assert(
    fc.property(cycles, (cycles) => {
      const threads = cycles.map((bids, at) => steps(`t${at}`, ...bids))
      const seen = new Set<string>()
      const record: Property<Ev> = {
        name: 'record',
        init: null,
        next: () => null,
        atQuiescence: (_, { states }) => seen.add(canonical(states)).size < 0,
      }
      const history = { init: 0, next: (sent: number, { source }: { source: string }) => sent + (source === 'external' ? 1 : 0) }
      explore<Ev, number>({ threads, environment: (_, sent) => (sent < depth ? offers : []), history, properties: [record] })
      expect([...seen].sort()).toEqual([...restsOf(threads, offers, depth)].sort())
    }),
  )
})

/** Returns the states in which the engine itself comes to rest, over every sequence of at most this many offers. */
function restsOf(threads: AnyThread<Ev>[], offers: Ev[], depth: number): Set<string> {
  const rests = new Set<string>()
  const sequences = (length: number): Ev[][] =>
    length === 0 ? [[]] : sequences(length - 1).flatMap((before) => offers.map((event) => [...before, event]))
  for (const sequence of [...Array(depth + 1).keys()].flatMap(sequences)) {
    const engine = createEngine({ threads })
    for (const event of sequence) engine.send(event)
    engine.superstep()
    rests.add(canonical(engine.states()))
  }
  return rests
}
