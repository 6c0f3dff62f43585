import { describe, expect, test } from 'bun:test'
import { AdmissionError, createEngine } from './engine.ts'
import type { AnyThread } from './thread.ts'

type Ev = { readonly type: string }

describe('a thread that is put in later', () => {
  const waits = (name: string, type: string): AnyThread<Ev> => ({
    name,
    priority: 5,
    init: 0,
    bid: () => ({ wait: [{ type }] }),
    next: (n: number) => n + 1,
  })

  test('blocks from then on, and the others keep their states', () => {
    const engine = createEngine<Ev>({ threads: [waits('counter', 'x')] })
    engine.send({ type: 'x' })
    engine.superstep()
    engine.put({ ...waits('wall', 'y'), bid: () => ({ block: [{ type: 'x' }] }) })
    engine.send({ type: 'x' })
    expect(engine.superstep().rejected).toEqual([{ event: { type: 'x' }, by: 'wall' }])
    expect(engine.states()).toEqual({ counter: 1, wall: 0 })
  })

  test('from inside a super-step takes part in the very next selection', () => {
    const asks: AnyThread<Ev> = {
      name: 'asks',
      priority: 9,
      init: 0,
      bid: (n: number) => ({ request: n < 2 ? [{ type: 'x' }] : [] }),
      next: (n: number) => n + 1,
    }
    const engine = createEngine<Ev>({ threads: [asks] })
    const seen: string[] = []
    engine.superstep((event) => {
      seen.push(event.type)
      if (seen.length === 1) engine.put({ ...waits('wall', 'y'), bid: () => ({ block: [{ type: 'x' }] }) })
    })
    expect(seen).toEqual(['x'])
    expect(engine.explain()).toEqual([{ thread: 'asks', event: { type: 'x' }, by: ['wall'] }])
  })

  test('takes the place of the one of its name, from its own beginning', () => {
    const engine = createEngine<Ev>({ threads: [waits('counter', 'x')] })
    engine.send({ type: 'x' })
    engine.superstep()
    engine.put(waits('counter', 'y'))
    for (const type of ['x', 'y', 'y']) engine.send({ type })
    engine.superstep()
    expect(engine.states()).toEqual({ counter: 2 })
  })

  test('that is unfit changes nothing', () => {
    const engine = createEngine<Ev>({ threads: [waits('counter', 'x')] })
    expect(() => engine.put({ ...waits('external', 'x') })).toThrow('the word for the world outside')
    engine.send({ type: 'x' })
    engine.superstep()
    expect(engine.states()).toEqual({ counter: 1 })
  })
})

test('an external event at which a thread throws is journalled once, and taken when the thread has been replaced', () => {
  const journal: string[] = []
  const fails: AnyThread<Ev> = {
    name: 'fails',
    priority: 1,
    init: 0,
    bid: () => ({ wait: [{ type: 'x' }] }),
    next: () => {
      throw new Error('bug')
    },
  }
  const counts: AnyThread<Ev> = { ...fails, name: 'counts', next: (n: number) => n + 1 }
  const engine = createEngine<Ev>({ threads: [counts, fails], onExternal: ({ type }) => void journal.push(type) })
  engine.send({ type: 'x' })
  expect(() => engine.superstep()).toThrow('bug')
  expect(engine.states()).toEqual({ counts: 0, fails: 0 })
  engine.put({ ...fails, bid: () => ({}) })
  expect(engine.superstep().selected.map(({ event }) => event.type)).toEqual(['x'])
  expect([journal, engine.states()]).toEqual([['x'], { counts: 1, fails: 0 }])
})

test('a match that throws while an external event comes in leaves it first in line', () => {
  const broken: AnyThread<Ev> = {
    name: 'broken',
    priority: 1,
    init: 0,
    bid: () => ({
      block: [
        {
          type: 'x',
          match: () => {
            throw new Error('bug')
          },
        },
      ],
    }),
    next: (state) => state,
  }
  const engine = createEngine<Ev>({ threads: [broken] })
  engine.send({ type: 'x' })
  expect(() => engine.superstep()).toThrow(new AdmissionError({ type: 'x' }, new Error('bug')))
  engine.put({ ...broken, bid: () => ({}) })
  expect(engine.superstep().selected.map(({ event }) => event.type)).toEqual(['x'])
})
