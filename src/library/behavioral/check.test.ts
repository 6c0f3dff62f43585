/** Tests the checker of behavioral programs: its findings, that it explores what the engine runs, and its messages about a wrong program. */

import { describe, expect, test } from 'bun:test'
import { dice } from '../../../test/support/dice.ts'
import { behavioral, bSync, bThread, frontier, type Idioms, type Program, verify } from '../behavioral.ts'

const findings = (program: Program) =>
  verify(program).findings.map(({ property, holds, steps }) => [property, holds, steps?.map(({ type }) => type).join(' ')])

/** Returns a shortest run to an event, as the counterexample of the claim that it never happens. */
const reach = (program: Program, never: string) => verify({ ...program, never }).findings[1]?.steps

/** A call needs an answer before it acts; `unapproved` happens when one acts without. */
const gated = {
  threads: {
    loop: { steps: [{ waitFor: 'thought' }, { request: { type: 'act' } }, { waitFor: 'acted' }], repeat: true },
    gate: { steps: [{ waitFor: 'thought' }, { block: 'act', waitFor: 'allow' }], repeat: true },
    witness: { steps: [{ waitFor: 'thought' }, { waitFor: 'act', interrupt: 'allow' }, { request: { type: 'unapproved' } }] },
  },
  publicEvents: ['allow'],
  never: 'unapproved',
} satisfies Program

describe('verify', () => {
  test('a program that keeps its promise, and the shortest run of the one without its gate', () => {
    expect(findings(gated)).toEqual([
      ['comes to rest', true, undefined],
      ['never unapproved', true, undefined],
    ])
    const { gate, ...threads } = gated.threads
    expect(findings({ ...gated, threads })).toEqual([
      ['comes to rest', true, undefined],
      ['never unapproved', false, 'thought act unapproved'],
    ])
  })
  test('each step says who made it', () => {
    const { gate, ...threads } = gated.threads
    const [, broken] = verify({ ...gated, threads }).findings
    expect(broken?.steps).toEqual([
      { type: 'thought', by: 'handlers' },
      { type: 'act', by: 'loop' },
      { type: 'unapproved', by: 'witness' },
    ])
  })
  test('threads of bThread and plain steps are one and the same', () => {
    const loop = bThread([bSync({ waitFor: 'thought' }), bSync({ request: { type: 'act' } }), bSync({ waitFor: 'acted' })], true)
    expect(verify({ ...gated, threads: { ...gated.threads, loop } })).toEqual(verify(gated))
  })
  test('an event by its detail, of a sample', () => {
    const program = (guard: Idioms): Program => ({
      threads: { one: { steps: [guard], repeat: true } },
      publicEvents: [
        { type: 'run', detail: { command: 'ls' } },
        { type: 'run', detail: { command: 'rm' } },
      ],
      never: [{ type: 'run', detail: { command: 'rm' } }],
    })
    expect(findings(program({ block: { type: 'run', detail: { command: 'rm' } } })).at(-1)?.[1]).toBe(true)
    expect(findings(program({ block: ({ detail }) => detail?.command === 'other' })).at(-1)).toEqual([
      'never {"type":"run","detail":{"command":"rm"}}',
      false,
      'run',
    ])
  })
  test('a livelock, with the shortest run once around', () => {
    const program: Program = {
      threads: { ping: { steps: [{ waitFor: 'go' }, { request: { type: 'ping' } }, { waitFor: 'pong' }] }, pong: { steps: [] } },
      publicEvents: ['go'],
    }
    expect(findings(program)[0]?.[1]).toBe(true)
    const turning = { steps: [{ waitFor: 'go' }, { request: { type: 'a' } }] }
    const ever = {
      ever: { steps: [{ waitFor: 'a' }] },
      round: bThread([bThread([bSync({ waitFor: 'go' })]), bThread([bSync({ request: { type: 'b' } })], true)]),
    }
    expect(findings({ threads: { turning, ...ever }, publicEvents: ['go'] })[0]).toEqual(['comes to rest', false, 'go a b'])
  })
  test('a livelock leaves other properties undecided', () => {
    const program = { threads: { one: bThread([bSync({ request: { type: 'a' } })], true) }, never: ['b'], events: ['b'] }
    expect(findings(program).map(([, holds]) => holds)).toEqual([false, false])
    const late = { steps: [{ waitFor: 'z' }, { request: { type: 'b' } }] }
    const threads = { ...program.threads, late }
    expect(findings({ ...program, threads, events: [] }).map(([, holds]) => holds)).toEqual([false, null])
  })
  test('a search that was cut decides nothing', () => {
    const events = ['a', 'b', 'c', 'd']
    const four = events.map((name) => [name, { steps: [{ waitFor: name }, { waitFor: name }] }] as const)
    const threads = { ...Object.fromEntries(four), late: { steps: [{ waitFor: 'z' }, { request: { type: 'x' } }] } }
    expect(verify({ threads, events, never: 'x' }, { maxStates: 5 })).toEqual({
      ok: false,
      states: 5,
      findings: [
        { property: 'comes to rest', holds: null },
        { property: 'never x', holds: null },
      ],
    })
    expect(verify({ threads, events, never: 'x' }).ok).toBe(true)
  })
  test('rounds of a number, a function that is asked, an interrupt of the whole thread', () => {
    const steps = [{ waitFor: 'a' }, { request: { type: 'b' } }]
    const program = (one: Program['threads'][string]): Program => ({
      threads: { one, count: { steps: [{ waitFor: 'b' }, { waitFor: 'b' }, { request: { type: 'two' } }] } },
      events: ['a'],
    })
    expect(reach(program({ steps, repeat: 2 }), 'two')?.map(({ type }) => type)).toEqual(['a', 'b', 'a', 'b', 'two'])
    expect(reach(program({ steps, repeat: 1 }), 'two')).toBeUndefined()
    expect(reach(program({ steps, repeat: () => true }), 'two')).toHaveLength(5)
    expect(reach(program({ steps, repeat: () => false }), 'two')).toBeUndefined()
    const [before, after] = [undefined, 'a'].map((interrupt) => reach(program({ steps, repeat: true, interrupt }), 'two'))
    expect([before?.length, after]).toEqual([5, undefined])
  })
  test('a template moves with its own event alone, as the engine has it', () => {
    const template = () => ({ type: 'a' })
    const threads = { plain: { steps: [{ request: { type: 'a' } }] }, made: { steps: [{ request: template }, { request: { type: 'b' } }] } }
    expect(reach({ threads }, 'b')?.map(({ type, by }) => `${type} ${by}`)).toEqual(['begin outside', 'a plain', 'a made', 'b made'])
  })
})

describe('the checker explores what the engine runs', () => {
  const names = ['a', 'b', 'c', 'd']
  /** Every event sequence that the engine shows is one that the frontier allows, step by step. */
  test.each([1, 2, 3, 4, 5, 6, 7, 8])('random programs, seed %d', (seed) => {
    const roll = dice(seed)
    const pick = () => names[roll(names.length)] ?? 'a'
    const step = (): Idioms => ({
      ...(roll(2) === 0 && { request: { type: pick() } }),
      ...(roll(2) === 0 && { waitFor: roll(2) === 0 ? pick() : [pick(), pick()] }),
      ...(roll(4) === 0 && { block: pick() }),
      ...(roll(8) === 0 && { interrupt: pick() }),
    })
    for (let round = 0; round < 40; round++) {
      const plans = Array.from(
        { length: 1 + roll(4) },
        (_, at) => [`t${at}`, { steps: Array.from({ length: 1 + roll(3) }, step), repeat: 1 + roll(2) }] as const,
      )
      const program: Program = { threads: Object.fromEntries(plans), events: names, publicEvents: ['go'] }
      const engine = behavioral()
      const happened: string[] = []
      engine.useSnapshot((message) => {
        if (message.kind === 'selection') happened.push(...message.bids.flatMap(({ selected, type }) => (selected ? [type] : [])))
      })
      engine.bThreads.set(
        Object.fromEntries(
          plans.map(([name, { steps, repeat }]) => [
            name,
            bThread(
              steps.map((one) => bSync(one)),
              repeat,
            ),
          ]),
        ),
      )
      for (let sent = 0; sent < 6; sent++) engine.trigger({ type: sent === 0 ? 'go' : pick() })
      for (let at = 0; at < happened.length; at++) {
        const { enabled } = frontier(program, happened.slice(0, at))
        expect(enabled.map(({ type }) => type)).toContain(happened[at] ?? '')
      }
    }
  })
})

describe('frontier', () => {
  test('at the beginning, under way, and with what is blocked', () => {
    expect(frontier(gated)).toEqual({
      enabled: [
        { type: 'allow', by: 'outside' },
        { type: 'thought', by: 'handlers' },
        { type: 'acted', by: 'handlers' },
        { type: 'begin', by: 'outside' },
      ],
      blocked: [],
    })
    expect(frontier(gated, ['thought']).blocked).toEqual([{ type: 'act', by: ['gate'] }])
    expect(frontier(gated, ['thought', 'allow']).enabled).toEqual([{ type: 'act', by: 'loop' }])
  })
  test('requests between the events of the history may be left out', () => {
    const [short, long] = [
      ['thought', 'allow', 'acted', 'thought'],
      ['thought', 'allow', 'act', 'acted', 'thought'],
    ]
    expect(frontier(gated, short)).toEqual(frontier(gated, long))
  })
  test('the detail of an event in the history counts', () => {
    const program: Program = {
      threads: {
        one: {
          steps: [{ waitFor: ({ type, detail }) => type === 'go' && detail?.n > 1 }, { request: { type: 'yes', detail: { ok: true } } }],
        },
      },
      publicEvents: ['go'],
    }
    expect(frontier(program, ['go']).enabled).toEqual([{ type: 'go', by: 'outside' }])
    expect(frontier(program, [{ type: 'go', detail: { n: 2 } }]).enabled).toEqual([{ type: 'yes', detail: { ok: true }, by: 'one' }])
  })
  test('a history that cannot be, and why', () => {
    expect(() => frontier(gated, ['thought', 'act'])).toThrow('"act" cannot come at this point of the history: gate blocks it')
    expect(() => frontier(gated, ['unapproved'])).toThrow('"unapproved" cannot come at this point of the history: what can come is allow')
    expect(() => frontier(gated, ['thougt'])).toThrow('"thougt" is not an event of this program')
    expect(() => frontier(gated, ['thougt'])).toThrow('; did you mean "thought"?')
  })
})

test('a forbidden event is reached by the shortest run; a listener that is a function is shown by its text', () => {
  expect(reach(gated, 'act')?.map(({ type }) => type)).toEqual(['thought', 'allow', 'act'])
  expect(reach(gated, 'unapproved')).toBeUndefined()
  expect(findings({ ...gated, never: ({ type }) => type === 'act' })[1]).toEqual([
    expect.stringContaining('type === '),
    false,
    'thought allow act',
  ])
})

describe('a program that is wrong', () => {
  const circle: { self?: unknown } = {}
  circle.self = circle
  test.each<[string, unknown, string]>([
    [
      'an unknown member',
      { threads: {}, publicEvent: [] },
      'the program has "publicEvent"; a program has threads, publicEvents, events, never; did you mean "publicEvents"?',
    ],
    [
      'an unknown idiom',
      { threads: { one: { steps: [{ waitsFor: 'a' }] } } },
      'bSync: "waitsFor"; a step has request, waitFor, block, interrupt; did you mean "waitFor"?',
    ],
    [
      'a generator function',
      { threads: { one: function* () {} } },
      'thread "one" is a generator function, whose end is not known; build it with bThread',
    ],
    [
      'too many steps',
      { threads: { one: { steps: [{ waitFor: 'a' }], repeat: 5000 } } },
      'thread "one" has 5000 steps, and 1000 can be checked; use fewer rounds',
    ],
    [
      'a thread with the name of the world',
      { threads: { handlers: { steps: [] } } },
      'a thread is called "handlers", which stands for the world; rename it',
    ],
    [
      'a circle in a request',
      { threads: { one: { steps: [{ request: { type: 'a', detail: circle } }] } } },
      'thread "one": request: "a": detail.self is a cycle',
    ],
    ['a circle in a sample', { threads: {}, publicEvents: [{ type: 'a', detail: circle }] }, 'publicEvents: "a": detail.self is a cycle'],
    ['a function in a detail', { threads: {}, events: [{ type: 'a', detail: { f() {} } }] }, 'events: "a": detail.f is function'],
    ['an event without a type', { threads: {}, events: [{ tipe: 'a' }] }, 'events is { tipe }; an event is an object with a type'],
    [
      'a listener that throws',
      { threads: { one: { steps: [{ waitFor: ({ detail }: { detail: string[] }) => detail.includes('x') }] } }, events: ['a'] },
      'thread "one": waitFor on "a" threw: ',
    ],
    ['a template that throws', { threads: { one: { steps: [{ request: () => JSON.parse('{') }] } } }, 'thread "one": request threw: '],
    [
      'a misspelled event that must not happen',
      { ...gated, never: ['unaproved'] },
      '"unaproved" is not an event of this program (allow, act, unapproved, thought, acted); did you mean "unapproved"?',
    ],
  ])('%s', (_, program, message) => {
    expect(() => verify(program as Program)).toThrow(message)
  })
})
