import { expect, test } from 'bun:test'
import { createEngine, LivelockError } from './engine.ts'
import type { AnyThread, Bid } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string }

const always = (name: string, bid: Bid<Ev>, priority = 0): AnyThread<Ev> => ({
  name,
  priority,
  init: 0,
  bid: () => bid,
  next: (n: number) => n + 1,
})
const counter = (to: number): AnyThread<Ev> => ({
  name: 'counter',
  priority: 0,
  init: 0,
  bid: (n: number) => (n < to ? { request: [{ type: 'tick' }] } : {}),
  next: (n: number) => n + 1,
})

const make = (threads: AnyThread<Ev>[], maxSelections?: number) => createEngine({ threads, maxSelections })

test('a bound that is none is refused', () => {
  for (const maxSelections of [0, -1, Number.NaN]) expect(() => make([], maxSelections)).toThrow('maxSelections')
})

test('a thousand events may follow one another, the next is a livelock that names the last ones', () => {
  expect(make([counter(1000)]).superstep().selected).toHaveLength(1000)
  const pingpong = make([always('ping', { request: [{ type: 'ping', id: '1' }] }), always('pong', { wait: [{ type: 'ping' }] })])
  expect(() => pingpong.superstep()).toThrow(LivelockError)
  expect(() => make([counter(4)], 3).superstep()).toThrow(
    'more than 3 events in a row with no external one between, the last tick, tick, tick;',
  )
})

test('many external events in one inbox are no livelock, each with its consequence', () => {
  const echo: AnyThread<Ev> = {
    name: 'echo',
    priority: 0,
    init: false,
    bid: (heard: boolean) => (heard ? { request: [{ type: 'y' }] } : { wait: [{ type: 'x' }] }),
    next: (heard: boolean) => !heard,
  }
  const engine = make([echo], 10)
  for (let at = 0; at < 2000; at++) engine.send({ type: 'x' })
  expect(engine.superstep().selected).toHaveLength(4000)
})

test('a chain of 200,000 events does not grow the stack', () => {
  const engine = make([counter(200_000)], 200_000)
  expect(engine.superstep().selected).toHaveLength(200_000)
  expect(engine.states()).toEqual({ counter: 200_000 })
})
