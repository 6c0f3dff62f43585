import { describe, expect, test } from 'bun:test'
import { createEngine, type EngineOptions } from './engine.ts'
import { label, type Selection } from './select.ts'
import type { AnyThread, Bid } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string; readonly by?: string }

/** Makes these bids one after the other: any event that advances it leads to the next bid; after the last it bids nothing. */
const script = (name: string, bids: readonly Bid<Ev>[], priority = 0): AnyThread<Ev> => ({
  name,
  priority,
  init: 0,
  bid: (at: number) => bids[at] ?? {},
  next: (at: number) => at + 1,
})
const always = (name: string, bid: Bid<Ev>, priority = 0): AnyThread<Ev> => ({
  name,
  priority,
  init: 0,
  bid: () => bid,
  next: (n: number) => n + 1,
})
const requests = (...types: string[]): Bid<Ev>[] => types.map((type) => ({ request: [{ type }] }))

const make = (threads: AnyThread<Ev>[], rest: Omit<EngineOptions<Ev>, 'threads'> = {}) => createEngine({ threads, ...rest })
const run = (threads: AnyThread<Ev>[], ...externals: Ev[]) => {
  const engine = make(threads)
  for (const event of externals) engine.send(event)
  return engine.superstep()
}
const told = (selected: readonly Selection<Ev>[]) => selected.map(({ event, source }) => `${label(event)} from ${source}`)

describe('what is refused', () => {
  test('a blocked request is not selected, whoever asks, and the request behind it is', () => {
    const step = run([
      script('eager', [{ request: [{ type: 'act' }, { type: 'rest' }] }], -5),
      always('veto', { block: [{ type: 'act' }] }, 99),
    ])
    expect(told(step.selected)).toEqual(['rest from eager'])
  })

  test('a block with an id or a condition holds back that event alone', () => {
    const asks = [
      { request: [{ type: 'act', id: '1' }] },
      { request: [{ type: 'act', id: '2', by: 'x' }] },
      { request: [{ type: 'act', id: '3' }] },
    ]
    const threads = asks.map((bid, at) => script(`asker${at}`, [bid]))
    const veto = always('veto', {
      block: [
        { type: 'act', id: '1' },
        { type: 'act', match: (event) => event.by === 'x' },
      ],
    })
    const step = run([...threads, veto])
    expect(step.selected.map(({ event }) => event)).toEqual([{ type: 'act', id: '3' }])
    expect(step.blocked.map(({ thread }) => thread)).toEqual(['asker0', 'asker1'])
  })

  test('a blocked external event is rejected with its first blocker and does not come back when the block is gone', () => {
    const journal: Ev[] = []
    const gate = script('gate', [{ block: [{ type: 'approve' }], wait: [{ type: 'open' }] }, { wait: [{ type: 'approve' }] }], 1)
    const engine = make([gate, always('second', { block: [{ type: 'approve', id: 'late' }] }, 2)], {
      onExternal: (event) => journal.push(event),
    })
    engine.send({ type: 'approve', id: 'late' })
    engine.send({ type: 'open' })
    const step = engine.superstep()
    expect(step.rejected).toEqual([{ event: { type: 'approve', id: 'late' }, by: 'gate' }])
    expect(step.selected).toEqual([{ event: { type: 'open' }, source: 'external', advanced: ['gate'] }])
    expect(engine.superstep()).toEqual({ selected: [], rejected: [], blocked: [] })
    expect(journal).toEqual([{ type: 'open' }])
  })

  test('ten thousand blocked external events are each rejected once and leave the inbox', () => {
    const engine = make([always('veto', { block: [{ type: 'noise' }] })])
    for (let at = 0; at < 10_000; at++) engine.send({ type: 'noise', id: `${at}` })
    const { rejected } = engine.superstep()
    expect(rejected.map(({ event }) => event.id)).toEqual(Array.from({ length: 10_000 }, (_, at) => `${at}`))
    expect(engine.superstep().rejected).toEqual([])
  })

  test('a stranded requester is explained with everyone who blocks it', () => {
    const engine = make([
      script('loop', requests('think'), 60),
      always('limits', { block: [{ type: 'think' }] }, 20),
      always('estop', { block: [{ type: 'think' }, { type: 'act' }] }, 0),
    ])
    const stranded = [{ thread: 'loop', event: { type: 'think' }, by: ['estop', 'limits'] }]
    expect(engine.explain()).toEqual(stranded)
    expect(engine.superstep().blocked).toEqual(stranded)
  })

  test('a super-step or a restore inside a super-step is refused', () => {
    const nested = (what: () => void) => make([], { onExternal: what })
    const step = nested(() => step.superstep())
    const back = nested(() => back.restore({}))
    for (const engine of [step, back]) {
      engine.send({ type: 'x' })
      expect(() => engine.superstep()).toThrow('inside a super-step')
    }
  })
})

describe('the order', () => {
  test('goes by priority, then registration, then place in the list', () => {
    const threads = [
      script('late', [{ request: [{ type: 'l1' }, { type: 'l2' }] }], 5),
      script('equal', requests('e1', 'e2'), 5),
      script('first', requests('f1'), 1),
    ]
    expect(told(run(threads).selected)).toEqual(['f1 from first', 'l1 from late', 'e1 from equal', 'e2 from equal'])
  })

  test('a thread registered late does not jump the queue of its equals', () => {
    const early = Array.from({ length: 20 }, (_, at) => script(`early${at}`, requests(`e${at}`), 10))
    const { selected } = run([...early, script('late', requests('l'), 10)])
    expect(selected.at(-1)?.source).toBe('late')
  })

  test('an external event waits until nothing internal can happen', () => {
    const step = run([script('worker', requests('a', 'b')), always('ear', { wait: [{ type: 'x' }] })], { type: 'x' })
    expect(told(step.selected)).toEqual(['a from worker', 'b from worker', 'x from external'])
  })

  test('three parallel requests of one type are all executed, one after the other', () => {
    type Open = { readonly ids: readonly string[] }
    const calls: AnyThread<Ev> = {
      name: 'calls',
      priority: 0,
      init: { ids: ['1', '2', '3'] },
      bid: ({ ids }: Open) => ({ request: ids.map((id) => ({ type: 'act', id })) }),
      next: ({ ids }: Open, event) => ({ ids: ids.filter((id) => id !== event.id) }),
    }
    expect(told(run([calls]).selected)).toEqual(['act#1 from calls', 'act#2 from calls', 'act#3 from calls'])
  })

  test('of three parallel requests the one that is blocked does not hold up the others', () => {
    const threads = ['1', '2', '3'].map((id) => script(`call${id}`, [{ request: [{ type: 'act', id }] }]))
    const step = run([...threads, always('veto', { block: [{ type: 'act', id: '1' }] })])
    expect(told(step.selected)).toEqual(['act#2 from call2', 'act#3 from call3'])
    expect(step.blocked).toEqual([{ thread: 'call1', event: { type: 'act', id: '1' }, by: ['veto'] }])
  })
})

describe('who advances', () => {
  test('everyone who requested the same type and id, waited or is interrupted, and nobody else', () => {
    const { selected } = run([
      script('asks', [{ request: [{ type: 'deny', id: '1', by: 'asks' }] }]),
      script('also asks', [{ request: [{ type: 'deny', id: '1', by: 'other words' }] }]),
      script('other id', [{ request: [{ type: 'deny', id: '2' }], block: [{ type: 'deny', id: '2' }] }]),
      script('waits', [{ wait: [{ type: 'deny' }] }]),
      script('waits for another', [{ wait: [{ type: 'deny', id: '2' }] }]),
      script('interrupted', [{ interrupt: [{ type: 'deny', match: (event) => event.by === 'asks' }] }]),
      script('only blocks', [{ block: [{ type: 'act' }] }]),
    ])
    expect(selected).toEqual([
      { event: { type: 'deny', id: '1', by: 'asks' }, source: 'asks', advanced: ['asks', 'also asks', 'waits', 'interrupted'] },
    ])
  })

  test('nobody, when an external event is not waited for; it is journalled all the same', () => {
    const journal: Ev[] = []
    const engine = make([always('deaf', { wait: [{ type: 'other' }] })], { onExternal: (event) => journal.push(event) })
    engine.send({ type: 'x' })
    expect(engine.superstep().selected).toEqual([{ event: { type: 'x' }, source: 'external', advanced: [] }])
    expect(journal).toEqual([{ type: 'x' }])
    expect(engine.states()).toEqual({ deaf: 0 })
  })
})

describe('what goes wrong', () => {
  test('a journal that fails leaves the event first in the inbox and every thread where it was', () => {
    let full = true
    const onExternal = () => {
      if (full) throw new Error('disk full')
    }
    const engine = make([always('ear', { wait: [{ type: 'x' }] })], { onExternal })
    engine.send({ type: 'x', id: '1' })
    engine.send({ type: 'x', id: '2' })
    expect(() => engine.superstep()).toThrow('disk full')
    expect(engine.states()).toEqual({ ear: 0 })
    full = false
    expect(told(engine.superstep().selected)).toEqual(['x#1 from external', 'x#2 from external'])
  })

  test('what happened before a failure is told by the next super-step', () => {
    let full = true
    const onExternal = () => {
      if (full) throw new Error('disk full')
    }
    const engine = make([script('worker', requests('act'))], { onExternal })
    engine.send({ type: 'x' })
    expect(() => engine.superstep()).toThrow('disk full')
    full = false
    expect(told(engine.superstep().selected)).toEqual(['act from worker', 'x from external'])
  })

  test('a thread that throws leaves all threads where they were', () => {
    const broken: AnyThread<Ev> = {
      ...always('broken', { wait: [{ type: 'x' }] }, 9),
      next: () => {
        throw new Error('bug')
      },
    }
    const engine = make([always('ear', { wait: [{ type: 'x' }] }), broken])
    engine.send({ type: 'x' })
    expect(() => engine.superstep()).toThrow('bug')
    expect(engine.states()).toEqual({ ear: 0, broken: 0 })
  })

  test('a thread that returns no state is named', () => {
    const engine = make([{ ...script('forgetful', requests('x')), next: () => undefined }])
    expect(() => engine.superstep()).toThrow('thread "forgetful" returned no state after x')
  })
})

test('with a callback each event is told as it happens and none is kept', () => {
  const engine = make([script('worker', requests('a', 'b'))])
  const heard: string[] = []
  engine.send({ type: 'x' })
  const step = engine.superstep((event, source) => heard.push(`${label(event)} from ${source}, worker at ${engine.states().worker}`))
  expect(heard).toEqual(['a from worker, worker at 1', 'b from worker, worker at 2', 'x from external, worker at 2'])
  expect(step.selected).toEqual([])
})

test('what a callback sends is taken in by the same super-step', () => {
  const engine = make([always('ear', { wait: [{ type: 'x' }] })])
  engine.send({ type: 'x', id: '1' })
  const heard: string[] = []
  engine.superstep((event) => {
    heard.push(label(event))
    if (heard.length < 5000) engine.send({ type: 'x', id: `${heard.length + 1}` })
  })
  expect(heard).toHaveLength(5000)
  expect(heard.at(-1)).toBe('x#5000')
})
