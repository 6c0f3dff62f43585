import { describe, expect, test } from 'bun:test'
import { createEngine } from './engine.ts'
import { divergence, replay } from './replay-steps.ts'
import type { AnyThread } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string; readonly n?: number }

/** Answers every question with an answer of the same number. */
const answerer: AnyThread<Ev> = {
  name: 'answerer',
  priority: 1,
  init: null,
  bid: (open: number | null) => (open === null ? { wait: [{ type: 'question' }] } : { request: [{ type: 'answer', n: open }] }),
  next: (open: number | null, event) => (open === null ? (event.n ?? 0) : null),
}
const veto = (match: (event: Ev) => boolean): AnyThread<Ev> => ({
  name: 'veto',
  priority: 0,
  init: 0,
  bid: () => ({ block: [{ type: 'answer', match }] }),
  next: (state) => state,
})
const ear: AnyThread<Ev> = { name: 'ear', priority: 0, init: 0, bid: () => ({ wait: [{ type: 'answer' }] }), next: (n: number) => n + 1 }
const externals = [1, 2, 3].map((n): Ev => ({ type: 'question', n }))

describe('replay', () => {
  test('repeats a run from its external events alone, however they had come in', () => {
    const engine = createEngine({ threads: [answerer] })
    for (const event of externals) engine.send(event)
    const { selected } = engine.superstep()
    expect(selected).toHaveLength(6)
    expect(replay({ threads: [answerer], externals })).toEqual({ selected, rejected: [], blocked: [] })
  })

  test('with a changed rule shows what would have been different, and where first', () => {
    const before = replay({ threads: [answerer], externals })
    const after = replay({ threads: [answerer, veto((event) => event.n === 2)], externals })
    expect(divergence(before.selected, before.selected)).toBeUndefined()
    expect(divergence(before.selected, after.selected)).toMatchObject({
      at: 3,
      before: { event: { type: 'answer', n: 2 }, source: 'answerer' },
      after: { event: { type: 'question', n: 3 }, source: 'external' },
    })
    expect(after.blocked).toEqual([{ thread: 'answerer', event: { type: 'answer', n: 2 }, by: ['veto'] }])
  })

  test('tells which external events today would be rejected', () => {
    const closed: AnyThread<Ev> = { ...veto(() => false), bid: () => ({ block: [{ type: 'question', match: (event) => event.n === 3 }] }) }
    expect(replay({ threads: [answerer, closed], externals }).rejected).toEqual([{ event: { type: 'question', n: 3 }, by: 'veto' }])
  })

  test('counts a livelock between two external events, not over the whole journal', () => {
    expect(replay({ threads: [answerer], externals, maxSelections: 1 }).selected).toHaveLength(6)
    const count: AnyThread<Ev> = {
      ...answerer,
      init: 0,
      bid: (n: number) => (n < 1500 ? { request: [{ type: 'answer' }] } : {}),
      next: (n: number) => n + 1,
    }
    expect(replay({ threads: [count], externals: [], maxSelections: 1500 }).selected).toHaveLength(1500)
    const endless: AnyThread<Ev> = { ...answerer, bid: () => ({ request: [{ type: 'answer' }] }) }
    expect(() => replay({ threads: [endless], externals })).toThrow('livelock')
  })
})

describe('divergence', () => {
  const happened = (n: number, source = 'a') => ({ event: { type: 'x', n }, source })

  test('is where one run had already ended', () => {
    expect(divergence([happened(1)], [])).toEqual({ at: 0, before: happened(1), after: undefined })
    expect(divergence([happened(1)], [happened(1), happened(2)])).toEqual({ at: 1, before: undefined, after: happened(2) })
  })

  test('is a changed payload or a changed source, not the order of keys', () => {
    expect(divergence([happened(1)], [happened(2)])?.at).toBe(0)
    expect(divergence([happened(1)], [happened(1, 'b')])?.at).toBe(0)
    expect(divergence([happened(1)], [{ event: { n: 1, type: 'x' }, source: 'a' }])).toBeUndefined()
  })

  test('is not that somebody else listened too', () => {
    const [alone, watched] = [[answerer], [answerer, ear]].map((threads) => replay({ threads, externals }).selected)
    expect(watched).not.toEqual(alone ?? [])
    expect(divergence(alone ?? [], watched ?? [])).toBeUndefined()
  })
})
