/** The behaviours of the engine, one row each: what a program of threads, triggers and handlers does. */

import { describe, expect, test } from 'bun:test'
import { block, request, start, times, waitFor } from '../../../test/support/behavioral-program.ts'
import { behavioral, bSync, bThread, type Idioms, type RulesFunction } from '../behavioral.ts'

describe('requests', () => {
  test('a request happens when the first event comes, not before', () => {
    const { happened, send } = start({ one: request('a') })
    expect(happened).toEqual([])
    expect(send('go')).toEqual(['go', 'a'])
  })
  test('steps come in order, and the thread is then over', () => {
    const { send, bThreads } = start({ one: bThread([request('a'), request('b'), request('c')]) })
    expect(send('go')).toEqual(['go', 'a', 'b', 'c'])
    expect(bThreads.has('one')).toEqual({ running: false, pending: false })
  })
  test('of two threads the one that was set first goes first, to its end', () => {
    expect(
      start({ one: times(3, request('hot')), two: times(3, request('cold')) })
        .send('go')
        .slice(1),
    ).toEqual([...['hot', 'hot', 'hot', 'cold', 'cold', 'cold']])
  })
  test('an event that two threads request happens once and moves both', () => {
    expect(start({ one: request('a'), two: bThread([request('a'), request('b')]) }).send('go')).toEqual(['go', 'a', 'b'])
  })
  test('a template is called for the selection, and sees the values of that moment', () => {
    const state = { count: 0 }
    const details: unknown[] = []
    const { useFeedback, send } = start({ one: times(3, bSync({ request: () => ({ type: 'n', detail: state.count }) })) })
    useFeedback({
      n(detail) {
        state.count = details.push(detail)
      },
    })
    send('go')
    expect(details).toEqual([0, 1, 2])
  })
  test('a template moves with its own event alone', () => {
    const template = () => ({ type: 'a' })
    const { send, bThreads } = start({ plain: request('a'), made: bThread([bSync({ request: template }), request('b')]) })
    expect(send('go')).toEqual(['go', 'a', 'a', 'b'])
    expect(bThreads.has('made').pending).toBe(false)
  })
  test('a trigger goes before every request', () => {
    expect(start({ one: request('a') }).send('first')).toEqual(['first', 'a'])
  })
})

describe('waiting', () => {
  test.each<[string, Idioms['waitFor'], readonly string[]]>([
    ['a type', 'b', ['a', 'b', 'seen']],
    ['a list of types', ['x', 'b'], ['a', 'b', 'seen']],
    ['a function of the event', ({ type }) => type.startsWith('b'), ['a', 'b', 'seen']],
    ['a list of functions and types', ['x', ({ type }) => type === 'b'], ['a', 'b', 'seen']],
    ['a pattern', { type: 'b' }, ['a', 'b', 'seen']],
    ['something else', 'c', ['a', 'b']],
    ['an empty list', [], ['a', 'b']],
  ])('%s', (_, listener, expected) => {
    expect(start({ one: bThread([waitFor(listener), request('seen')]) }).send('a', 'b')).toEqual([...expected])
  })
  test.each<[string, Idioms['waitFor'], unknown, boolean]>([
    ['a function of the detail', ({ detail }) => detail?.n > 1, { n: 2 }, true],
    ['a function of the detail that is false', ({ detail }) => detail?.n > 1, { n: 1 }, false],
    ['members of the detail', { type: 'a', detail: { n: 1 } }, { n: 1, more: true }, true],
    ['members deep in the detail', { type: 'a', detail: { of: [{ n: 1 }] } }, { of: [{ n: 1, m: 2 }, 3] }, true],
    ['another member', { type: 'a', detail: { n: 1 } }, { n: 2 }, false],
    ['a detail that is not there', { type: 'a', detail: { n: 1 } }, undefined, false],
    ['a schema', { type: 'a', detailSchema: { safeParse: (given) => ({ success: given === 1 }) } }, 1, true],
    ['a schema that refuses', { type: 'a', detailSchema: { safeParse: (given) => ({ success: given === 1 }) } }, 2, false],
  ])('%s', (_, listener, detail, moves) => {
    const { trigger, happened } = start({ one: bThread([waitFor(listener), request('seen')]) })
    trigger({ type: 'a', detail })
    expect(happened.includes('seen')).toBe(moves)
  })
  test('a step that waits and requests moves with whichever comes first', () => {
    expect(start({ one: bThread([bSync({ request: { type: 'a' }, waitFor: 'b', block: 'a' }), request('c')]) }).send('b')).toEqual([
      'b',
      'c',
    ])
  })
  test('all threads that wait for an event move with it, whoever made it', () => {
    const { send } = start({ one: bThread([waitFor('a'), request('b')]), two: bThread([waitFor('b'), request('c')]) })
    expect(send('a')).toEqual(['a', 'b', 'c'])
  })
})

describe('blocking', () => {
  test('a block is stronger than a request and than a trigger', () => {
    const { send, useFeedback } = start({ one: request('a'), guard: block('a') })
    useFeedback({ a: () => expect.unreachable() })
    expect(send('go', 'a')).toEqual(['go'])
  })
  test.each<[string, Idioms['block']]>([
    ['by a type', 'a'],
    ['by a list', ['x', 'a']],
    ['by a function', ({ type }) => type === 'a'],
    ['by the detail', { type: 'a', detail: { bad: true } }],
    ['by a function of the detail', ({ detail }) => detail?.bad],
  ])('%s', (_, listener) => {
    const { trigger, happened } = start({ guard: block(listener) })
    trigger({ type: 'a', detail: { bad: true } })
    trigger({ type: 'b' })
    expect(happened).toEqual(['b'])
  })
  test('a blocked request happens when the block is lifted', () => {
    expect(start({ one: request('a'), guard: waitFor('free', { block: 'a' }) }).send('go', 'free')).toEqual(['go', 'free', 'a'])
  })
  test('a blocked trigger is gone, and does not come later', () => {
    expect(start({ guard: waitFor('free', { block: 'a' }) }).send('a', 'free', 'b')).toEqual(['free', 'b'])
  })
  test('two threads that request take turns under a third that blocks', () => {
    const mix = bThread([waitFor('hot', { block: 'cold' }), waitFor('cold', { block: 'hot' })], true)
    const { send } = start({ hot: times(2, request('hot')), cold: times(2, request('cold')), mix })
    expect(send('go').slice(1)).toEqual(['hot', 'cold', 'hot', 'cold'])
  })
  test('the next request in order happens when the first is blocked', () => {
    expect(start({ one: request('a'), two: request('b'), guard: block('a') }).send('go')).toEqual(['go', 'b'])
  })
  test('a function of a block sees what a handler changed', () => {
    const ids = new Set<string>()
    const { trigger, happened } = start({ guard: block(({ type, detail }) => type === 'run' && ids.has(detail?.id)) })
    const run = (id: string) => trigger({ type: 'run', detail: { id } })
    run('1')
    ids.add('1')
    run('1')
    run('2')
    ids.clear()
    run('1')
    expect(happened).toEqual(['run', 'run', 'run'])
  })
  test('a request that was blocked by a value happens when the value has changed', () => {
    const state = { closed: true }
    const { send } = start({ one: bThread([request('a')]), guard: block(({ type }) => type === 'a' && state.closed) })
    send('go')
    state.closed = false
    expect(send('again')).toEqual(['go', 'again', 'a'])
  })
  test('after its last event a guard blocks everything', () => {
    const { send } = start({ guard: bThread([waitFor('done'), block(() => true)], true) })
    expect(send('work', 'done', 'work', 'done')).toEqual(['work', 'done'])
  })
})

describe('interrupts', () => {
  const hot = bThread([waitFor('add', { interrupt: 'stop' }), request('hot')], true)
  test('an event that interrupts ends the thread for good', () => {
    const { send, bThreads } = start({ hot })
    expect(send('add', 'add', 'stop', 'add')).toEqual(['add', 'hot', 'add', 'hot', 'stop', 'add'])
    expect(bThreads.has('hot')).toEqual({ running: false, pending: false })
  })
  test('without it the thread is pending after each event', () => {
    const { send, bThreads } = start({ hot })
    send('add', 'add')
    expect(bThreads.has('hot')).toEqual({ running: false, pending: true })
  })
  test('an interrupt of bThread holds in every step', () => {
    for (const at of [1, 2, 3]) {
      const { send } = start({ one: bThread([waitFor('a'), waitFor('b'), request('c')], true, { interrupt: 'stop' }) })
      expect(send(...['a', 'b', 'x'].slice(0, at - 1), 'stop', 'a', 'b')).not.toContain(at === 3 ? 'd' : 'c')
    }
  })
  test('it is added to the interrupts of the steps', () => {
    const thread = () => bThread([waitFor('a', { interrupt: ['own'] })], true, { interrupt: [({ type }) => type === 'all'] })
    for (const stop of ['own', 'all']) {
      const { send, bThreads } = start({ one: thread() })
      send('a', stop)
      expect(bThreads.has('one').pending).toBe(false)
    }
  })
  test('its name is free again', () => {
    const { send, bThreads } = start({ hot })
    send('stop')
    bThreads.set({ hot })
    expect(send('add')).toEqual(['stop', 'add', 'hot'])
  })
  test('a block of the event that interrupts keeps the thread', () => {
    const { send } = start({ hot, guard: block('stop') })
    expect(send('stop', 'add')).toEqual(['add', 'hot'])
  })
  test('a generator function ends through its finally', () => {
    const ends: string[] = []
    function* own() {
      try {
        yield { waitFor: 'a', interrupt: 'stop' }
      } finally {
        ends.push('ended')
      }
    }
    start({ own }).send('stop')
    expect(ends).toEqual(['ended'])
  })
})

describe('repeating', () => {
  test('true: for ever', () => {
    expect(
      start({ one: bThread([waitFor('a'), request('b')], true) })
        .send('a', 'a', 'a')
        .filter((type) => type === 'b'),
    ).toHaveLength(3)
  })
  test('a number: so many rounds', () => {
    expect(
      start({ one: bThread([waitFor('a'), request('b')], 2) })
        .send('a', 'a', 'a')
        .filter((type) => type === 'b'),
    ).toHaveLength(2)
  })
  test('a function is asked before each round, after the handlers', () => {
    const state = { left: 2 }
    const { send, useFeedback, bThreads } = start({ one: bThread([request('a')], () => state.left > 0) })
    useFeedback({
      a() {
        state.left -= 1
      },
    })
    expect(send('go')).toEqual(['go', 'a', 'a'])
    expect(bThreads.has('one').pending).toBe(false)
  })
  test('a function that is false from the beginning', () => {
    expect(start({ one: bThread([request('a')], () => false) }).send('go')).toEqual(['go'])
  })
  test('a thread in a thread, with rounds of its own', () => {
    expect(
      start({ one: bThread([bThread([request('a')], 2), request('b')], 2) })
        .send('go')
        .slice(1)
        .join(''),
    ).toBe('aabaab')
  })
  test('no steps: over at once, also when it is to be repeated', () => {
    const { send, bThreads } = start({ none: bThread([]), ever: bThread([bThread([])], true) })
    expect(send('go')).toEqual(['go'])
    expect(bThreads.has('ever')).toEqual({ running: false, pending: false })
  })
  test('one rule serves two programs', () => {
    const rule = bThread([waitFor('a'), request('b')])
    expect([start({ rule }).send('a'), start({ rule }).send('a')]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
  })
})

describe('what bSync and bThread return', () => {
  const steps = (rule: RulesFunction, most = 9) => {
    const found: Idioms[] = []
    for (const step of rule()) if (found.push(step) >= most) break
    return found
  }
  test('a generator function that yields the step as it is, once', () => {
    const step = { request: () => ({ type: 'a' }), waitFor: ({ type }: { type: string }) => type === 'b', block: ['c'], interrupt: 'd' }
    expect(steps(bSync(step))).toEqual([step])
    expect(steps(bSync(step))[0]).toBe(step)
  })
  test('rules one after the other; again when repeated', () => {
    const names = (rule: RulesFunction, most?: number) => steps(rule, most).map(({ waitFor }) => waitFor)
    expect(names(bThread([waitFor('a'), waitFor('b')]))).toEqual(['a', 'b'])
    expect(names(bThread([waitFor('a'), waitFor('b')], true), 5)).toEqual(['a', 'b', 'a', 'b', 'a'])
    expect(steps(bThread([]))).toEqual([])
  })
  test('a template is yielded, not called', () => {
    const template = () => expect.unreachable()
    expect(steps(bSync({ request: template }))[0]?.request).toBe(template)
  })
})

describe('threads that are added', () => {
  test('has: running until the first event, then pending; neither for a name that is not there', () => {
    const { bThreads, send } = start({ one: waitFor('a') })
    expect([bThreads.has('one'), bThreads.has('two')]).toEqual([
      { running: true, pending: false },
      { running: false, pending: false },
    ])
    send('go')
    expect(bThreads.has('one')).toEqual({ running: false, pending: true })
  })
  test('in a handler: they take part at once', () => {
    const { bThreads, useFeedback, send } = start({ one: request('a') })
    useFeedback({ a: () => bThreads.set({ two: times(2, request('b')) }) })
    expect(send('go')).toEqual(['go', 'a', 'b', 'b'])
  })
  test('in a handler, with a trigger, under a thread that makes them take turns', () => {
    const isHot = ({ type }: { type: string }) => type.startsWith('hot')
    const isCold = ({ type }: { type: string }) => type.startsWith('cold')
    const mix = bThread([waitFor(isHot, { block: isCold }), waitFor(isCold, { block: isHot })], true)
    const { bThreads, useFeedback, send, trigger } = start({ once: request('hot_1'), mix })
    useFeedback({
      hot_1() {
        trigger({ type: 'cold' })
        bThreads.set({ hot: times(2, request('hot')), cold: times(2, request('cold')) })
      },
    })
    expect(send('go').slice(1)).toEqual(['hot_1', 'cold', 'hot', 'cold', 'hot', 'cold'])
  })
  test('a name in use keeps its thread, and a message says so', () => {
    const { bThreads, messages, send } = start({ one: bThread([waitFor('a'), request('first')]) })
    bThreads.set({ one: bThread([waitFor('a'), request('second')]) })
    expect(messages).toEqual([{ kind: 'bthreads_warning', thread: 'one', warning: expect.stringContaining('Thread "one" already exists') }])
    expect(send('a')).toEqual(['a', 'first'])
  })
  test('a name is free when its thread is over', () => {
    const { bThreads, send } = start({ one: request('a') })
    send('go')
    bThreads.set({ one: request('b') })
    expect(send('go')).toEqual(['go', 'a', 'go', 'b'])
  })
})

describe('handlers', () => {
  test('they get the detail, in the order of the events; an event without a handler passes', () => {
    const seen: unknown[] = []
    const { useFeedback, trigger } = start({ one: bThread([waitFor('a'), request('b', 2), request('c')]) })
    useFeedback({ a: (detail) => void seen.push(detail), b: (detail) => void seen.push(detail) })
    trigger({ type: 'a', detail: 1 })
    expect(seen).toEqual([1, 2])
  })
  test('several sets of handlers; each can be taken off', () => {
    const seen: string[] = []
    const { useFeedback, send } = start({})
    const off = useFeedback({ a: () => void seen.push('one') })
    useFeedback({ a: () => void seen.push('two') })
    send('a')
    off()
    send('a')
    expect(seen).toEqual(['one', 'two', 'two'])
  })
  test('a name of Object.prototype is an event like others', () => {
    const { useFeedback, send } = start({})
    useFeedback({})
    expect(send('toString', 'constructor')).toEqual(['toString', 'constructor'])
  })
  test('a trigger in a handler comes after the handler, and when no request is left', () => {
    const seen: string[] = []
    const { useFeedback, trigger, send } = start({ one: bThread([waitFor('a'), request('b')]), two: bThread([waitFor('x'), request('y')]) })
    useFeedback({
      a() {
        trigger({ type: 'x' })
        trigger({ type: 'z' })
        seen.push('after')
      },
      x: () => void seen.push('x'),
    })
    expect(send('a')).toEqual(['a', 'b', 'x', 'y', 'z'])
    expect(seen).toEqual(['after', 'x'])
  })
  test('an asynchronous handler does not hold the program up; its trigger comes later', async () => {
    const wait = Promise.withResolvers<void>()
    const { useFeedback, trigger, happened, send } = start({ one: request('init'), two: request('next') })
    const ended = new Promise<void>((done) => {
      useFeedback({
        async init() {
          await wait.promise
          trigger({ type: 'update' })
          done()
        },
      })
    })
    expect(send('go')).toEqual(['go', 'init', 'next'])
    wait.resolve()
    await ended
    expect(happened).toEqual(['go', 'init', 'next', 'update'])
  })
  test('what an asynchronous handler triggers after the end is blocked', async () => {
    const wait = Promise.withResolvers<void>()
    const { useFeedback, trigger, send, happened } = start({ end: bThread([waitFor('end'), block(() => true)]) })
    const late = new Promise<void>((done) => {
      useFeedback({ work: () => wait.promise.then(() => trigger({ type: 'late' })).then(done) })
    })
    send('work', 'end')
    wait.resolve()
    await late
    expect(happened).toEqual(['work', 'end'])
  })
  test('a long chain of triggers in handlers does not fill the stack', () => {
    const { useFeedback, trigger } = behavioral({ maxSelections: 50_000 })
    const state = { left: 50_000 }
    useFeedback({
      next() {
        if (--state.left > 0) trigger({ type: 'next' })
      },
    })
    trigger({ type: 'next' })
    expect(state.left).toBe(0)
  })
})

describe('snapshots', () => {
  test('a selection shows every request with its place, who blocks and whom it interrupts', () => {
    const { send, messages } = start({
      one: request('a', 1),
      two: request('b'),
      guard: block(['b', 'c']),
      watch: bSync({ interrupt: 'a' }),
    })
    send('go')
    const bid = { trigger: false, selected: false, detail: undefined, blockedBy: undefined, interrupts: undefined }
    expect(messages).toEqual([
      {
        kind: 'selection',
        bids: [
          { ...bid, thread: 'Symbol(go)', trigger: true, selected: true, type: 'go', priority: 0 },
          { ...bid, thread: 'one', type: 'a', detail: 1, priority: 1, interrupts: 'watch' },
          { ...bid, thread: 'two', type: 'b', priority: 2, blockedBy: 'guard' },
        ],
      },
      {
        kind: 'selection',
        bids: [
          { ...bid, thread: 'one', type: 'a', detail: 1, priority: 1, interrupts: 'watch', selected: true },
          { ...bid, thread: 'two', type: 'b', priority: 2, blockedBy: 'guard' },
        ],
      },
      { kind: 'deadlock', bids: [{ ...bid, thread: 'two', type: 'b', priority: 2, blockedBy: 'guard' }] },
    ])
  })
  test('nothing is said of a rest without requests', () => {
    const { send, messages } = start({ one: waitFor('a') })
    send('go')
    expect(messages.map(({ kind }) => kind)).toEqual(['selection'])
  })
  test('a listener can be taken off; several see the same; it comes before the handlers', () => {
    const seen: string[] = []
    const { useSnapshot, useFeedback, trigger } = behavioral()
    const off = useSnapshot(() => void seen.push('one'))
    useSnapshot(() => void seen.push('two'))
    useFeedback({ a: () => void seen.push('handler') })
    trigger({ type: 'a' })
    off()
    trigger({ type: 'b' })
    expect(seen).toEqual(['one', 'two', 'handler', 'two'])
  })
})
