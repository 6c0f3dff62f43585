import { describe, expect, test } from 'bun:test'
import { createEngine } from './engine.ts'
import type { AnyThread, Bid } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string }

const always = (name: string, bid: Bid<Ev>, priority = 0): AnyThread<Ev> => ({
  name,
  priority,
  init: 0,
  bid: () => bid,
  next: (n: number) => n + 1,
})
const make = (threads: AnyThread<Ev>[]) => createEngine({ threads })

describe('a program', () => {
  test.each([
    ['two threads of one name', [always('a', {}), always('a', {})], 'two threads are called "a"'],
    ['an empty name', [always('', {})], 'empty name'],
    ['the name of the world', [always('external', {})], 'rename it'],
    ['a priority that orders nothing', [always('a', {}, Number.NaN)], 'priority NaN'],
  ])('a program with %s is no program', (_, threads, message) => {
    expect(() => make(threads)).toThrow(message)
  })

  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  test.each<[string, unknown, string]>([
    ['a Map', { seen: new Map() }, 'thread "a": state.seen is a Map'],
    ['a Date in a list', { at: [0, new Date(0)] }, 'state.at[1] is a Date'],
    ['a function', { call: () => 0 }, 'state.call is function'],
    ['NaN', { n: Number.NaN }, 'state.n is NaN'],
    ['a bigint', 1n, 'state is bigint'],
    ['a hole', { list: Array(1) }, 'state.list[0] is undefined'],
    ['nothing', undefined, 'state is undefined'],
    ['a cycle', cycle, 'state.self is a cycle'],
  ])('a state with %s is not plain JSON', (_, init, message) => {
    expect(() => make([{ ...always('a', {}), init }])).toThrow(message)
  })
})

describe('states', () => {
  test('are copies both ways, and a definition serves many engines', () => {
    const list: AnyThread<Ev> = {
      name: '__proto__',
      priority: 0,
      init: { seen: [] },
      bid: () => ({ wait: [{ type: 'x' }] }),
      next: (s) => s,
    }
    const engine = make([list])
    const taken = engine.states()
    expect(Object.keys(taken)).toEqual(['__proto__'])
    Object.assign(Object(Object.values(taken)[0]), { seen: ['spoiled'] })
    expect(JSON.stringify([engine.states(), make([list]).states()])).toBe('[{"__proto__":{"seen":[]}},{"__proto__":{"seen":[]}}]')
  })

  test('of another program, or spoiled, are refused and nothing has changed', () => {
    const engine = make([always('a', {}), always('b', {})])
    expect(() => engine.restore({ a: 5, c: 1 })).toThrow('no thread is called "c", no state for thread "b"')
    expect(() => engine.restore({ a: 5, b: Number.NaN })).toThrow('thread "b": state is NaN')
    expect(engine.states()).toEqual({ a: 0, b: 0 })
  })
})
