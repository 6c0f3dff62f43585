import { describe, expect, test } from 'bun:test'
import { createEngine } from './engine.ts'
import type { AnyThread, Bid } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string }

const many = <T>(of: number, make: (at: number) => T) => Array.from({ length: of }, (_, at) => make(at))
const counter = (to: number): AnyThread<Ev> => ({
  name: 'counter',
  priority: 99,
  init: 0,
  bid: (n: number) => (n < to ? { request: [{ type: 'tick' }] } : {}),
  next: (n: number) => n + 1,
})

/** Calls back each time that a list of this bid is read. */
function watched(bid: Bid<Ev>, read: () => void): Bid<Ev> {
  const noticed = <T>(list: T) => {
    read()
    return list
  }
  return {
    get request() {
      return noticed(bid.request)
    },
    get wait() {
      return noticed(bid.wait)
    },
    get block() {
      return noticed(bid.block)
    },
    get interrupt() {
      return noticed(bid.interrupt)
    },
  }
}

describe('a thread nobody speaks to costs nothing', () => {
  test('while it waits for and blocks other things: its bid is not looked at again', () => {
    let reads = 0
    const idle = many(1000, (at): AnyThread<Ev> => {
      const bid = watched({ wait: [{ type: `never${at}` }], block: [{ type: `nothing${at}` }] }, () => void reads++)
      return { name: `idle${at}`, priority: 0, init: 0, bid: () => bid, next: (n: number) => n }
    })
    const engine = createEngine({ threads: [...idle, counter(500)] })
    const before = reads
    expect(engine.superstep().selected).toHaveLength(500)
    expect(reads - before).toBeLessThanOrEqual(1000)
  })

  test.each<[string, Bid<Ev>]>([
    ['waits for', { wait: [{ type: 'tick', id: 'other' }] }],
    ['is interrupted by', { interrupt: [{ type: 'tick', id: 'other' }] }],
    ['blocks', { block: [{ type: 'tick', id: 'other' }] }],
    ['requests in vain', { request: [{ type: 'tick', id: 'held' }] }],
    ['requests in vain and blocks', { request: [{ type: 'tick', id: 'held' }], block: [{ type: 'tick', id: 'held' }] }],
  ])('while it %s another id of the very type that happens: its bid is not looked at again', (_, bid) => {
    let reads = 0
    const seen = watched(bid, () => void reads++)
    const idle = many(1000, (at): AnyThread<Ev> => ({ name: `idle${at}`, priority: 1, init: 0, bid: () => seen, next: (n) => n }))
    const veto: AnyThread<Ev> = {
      name: 'veto',
      priority: 0,
      init: 0,
      bid: () => ({ block: [{ type: 'tick', id: 'held' }] }),
      next: (n) => n,
    }
    const engine = createEngine({ threads: [veto, ...idle, counter(500)] })
    engine.superstep(() => {})
    // The index reads each bid a few times until it is cached; a read per event would make 500,000.
    expect(reads).toBeLessThan(30_000)
  })

  test('while its request stays blocked, though the thread that blocks it bids the same again at every event', () => {
    let reads = 0
    const seen = watched({ request: [{ type: 'act' }] }, () => void reads++)
    const idle = many(1000, (at): AnyThread<Ev> => ({ name: `idle${at}`, priority: 1, init: 0, bid: () => seen, next: (n) => n }))
    const veto: AnyThread<Ev> = {
      name: 'veto',
      priority: 0,
      init: 0,
      bid: () => ({ wait: [{ type: 'tick' }], block: [{ type: 'act' }] }),
      next: (n: number) => n + 1,
    }
    const engine = createEngine({ threads: [veto, ...idle, counter(500)] })
    engine.superstep(() => {})
    expect(reads).toBeLessThan(30_000)
    expect(engine.states().veto).toBe(500)
  })

  test.each<[string, Bid<Ev>]>([
    ['waited', { wait: [{ type: 'tick' }] }],
    ['interrupted', { interrupt: [{ type: 'tick' }] }],
    ['requested', { request: [{ type: 'tick' }] }],
    ['blocked', { block: [{ type: 'tick' }], wait: [{ type: 'open' }] }],
    ['requested something else', { request: [{ type: 'other' }] }],
  ])('once it is done with what it %s: it is soon forgotten', (_, bid) => {
    let reads = 0
    const silent = watched({}, () => void reads++)
    const done = many(
      100,
      (at): AnyThread<Ev> => ({ name: `done${at}`, priority: 0, init: 0, bid: (n) => (n === 0 ? bid : silent), next: () => 1 }),
    )
    const engine = createEngine({ threads: [...done, counter(900)] })
    engine.superstep()
    engine.send({ type: 'open' })
    engine.superstep()
    // The index reads each of the hundred bids on insertion and a few times until the sweep; a read per event would make 90,000.
    expect(reads).toBeLessThan(2000)
  })
})

describe('a thread that still speaks is not forgotten', () => {
  test('though many others were looked at in vain: its block holds', () => {
    const blocks = many(
      50,
      (at): AnyThread<Ev> => ({
        name: `b${at}`,
        priority: 0,
        init: 0,
        bid: () => ({ block: [{ type: 'act', id: `${at}` }] }),
        next: (n) => n,
      }),
    )
    const engine = createEngine({ threads: blocks })
    const ids = ['free', '49', '0', 'free', '17']
    for (const id of ids) engine.send({ type: 'act', id })
    const { selected, rejected } = engine.superstep()
    expect(selected.map(({ event }) => event.id)).toEqual(['free', 'free'])
    expect(rejected.map(({ by }) => by)).toEqual(['b49', 'b0', 'b17'])
  })

  test('though many others were looked at in vain: it still hears', () => {
    const listens = many(
      50,
      (at): AnyThread<Ev> => ({
        name: `l${at}`,
        priority: 0,
        init: 0,
        bid: () => ({ [at % 2 ? 'wait' : 'interrupt']: [{ type: 'x', id: `${at}` }] }),
        next: (n: number) => n + 1,
      }),
    )
    const engine = createEngine({ threads: listens })
    for (const id of ['none', '49', '48', 'none', '0']) engine.send({ type: 'x', id })
    expect(engine.superstep().selected.map(({ advanced }) => advanced)).toEqual([[], ['l49'], ['l48'], [], ['l0']])
  })
})
