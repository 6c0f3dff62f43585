import { describe, expect, test } from 'bun:test'
import type { Risk } from '../runtime/event.ts'
import { type CommandFacts, highest, type Levels, pathRisk, permit, type Rated, type RequestFacts } from './autonomy.ts'

const risks: readonly Risk[] = ['low', 'medium', 'high']
const autonomies = ['readonly', 'supervised', 'full'] as const

const usual = {
  approveAllMedium: false,
  ask: 'changes',
  unlistedCommands: 'ask',
  readonlyCommands: 'block',
  egress: 'ask',
  direct: 'ask',
} as const
const unconfined: CommandFacts = { confined: false, transaction: false, hosts: [], beyond: [], direct: false }
const boxed: CommandFacts = { ...unconfined, confined: true }
const viewed: CommandFacts = { ...boxed, transaction: true }

function rated(risk: Risk, more: Partial<Rated> = {}): Rated {
  return { rating: { risk, reason: 'does a thing' }, reads: true, always: false, ...more }
}

function said(autonomy: Levels['autonomy'], call: Rated, more: Partial<Levels> = {}): string {
  const { verdict, rule } = permit(call, { ...usual, autonomy, ...more })
  return `${verdict} ${rule}`
}

/** Returns the verdicts on a command of readonly, supervised, supervised with --auto, and full. */
function levels(risk: Risk, command: CommandFacts, more: Partial<Levels> = {}): string[] {
  const call = rated(risk, { reads: risk === 'low', command })
  return [
    said('readonly', call, more),
    said('supervised', call, more),
    said('supervised', call, { ...more, approveAllMedium: true }),
    said('full', call, more),
  ]
}

describe('readonly', () => {
  test('refuses medium and high, even when it reads, even when approved in advance or always', () => {
    for (const risk of ['medium', 'high'] as const)
      expect(said('readonly', rated(risk, { always: true }), { approveAllMedium: true })).toBe('deny autonomy.readonly')
  })
  test('refuses a low-risk call that writes or sends', () =>
    expect(said('readonly', rated('low', { reads: false }))).toBe('deny autonomy.readonly'))
  test('allows low-risk reading', () => expect(said('readonly', rated('low'))).toBe('allow autonomy.low'))
  test('runs and drops a command only by setting, on a private view, without network', () => {
    const drop = { readonlyCommands: 'drop' } as const
    expect(said('readonly', rated('medium', { command: viewed }))).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('high', { command: boxed }), drop)).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('high', { command: { ...viewed, direct: true } }), drop)).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('high', { command: { ...viewed, hosts: ['a.org'] } }), drop)).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('high'), drop)).toBe('deny autonomy.readonly')
    expect(said('readonly', rated('high', { command: viewed }), drop)).toBe('allow autonomy.dropped')
  })
})

describe('supervised', () => {
  test('blocks high, whatever was approved in advance', () => {
    expect(said('supervised', rated('high', { always: true }), { approveAllMedium: true })).toBe('deny autonomy.high_blocked')
  })
  test('asks for medium', () => expect(said('supervised', rated('medium'))).toBe('ask autonomy.medium_asks'))
  test('runs medium that was approved in advance, and what is always allowed', () => {
    expect(said('supervised', rated('medium'), { approveAllMedium: true })).toBe('allow autonomy.approve_all_medium')
    expect(said('supervised', rated('medium', { always: true }))).toBe('allow autonomy.always')
  })
  test('runs low by itself', () => expect(said('supervised', rated('low', { reads: false }))).toBe('allow autonomy.low'))
})

describe('a command', () => {
  const blocked = 'deny autonomy.high_blocked'
  const refused = 'deny autonomy.readonly'
  const [asks, advance, full] = ['ask autonomy.medium_asks', 'allow autonomy.approve_all_medium', 'allow autonomy.full']

  test('that nothing confines is blocked when it is not listed, whatever the settings say', () => {
    expect(levels('high', unconfined)).toEqual([refused, blocked, blocked, full])
    expect(levels('medium', unconfined)).toEqual([refused, asks, advance, full])
  })

  test('that only a sandbox confines asks before it runs; an unlisted one asks with --auto too', () => {
    const ask = 'ask autonomy.unlisted_asks'
    expect(levels('high', boxed)).toEqual([refused, ask, ask, full])
    expect(levels('medium', boxed)).toEqual([refused, asks, advance, full])
  })

  test('with a private view runs without a question, because its changes ask', () => {
    const runs = 'allow autonomy.transaction'
    for (const risk of ['medium', 'high'] as const) expect(levels(risk, viewed)).toEqual([refused, runs, runs, full])
    expect(permit(rated('high', { command: viewed }), { ...usual, autonomy: 'supervised' }).risk).toBe('medium')
  })

  test('asks before it runs where ask is "before", and is blocked when unlisted where that is "block"', () => {
    expect(levels('high', viewed, { ask: 'before' })).toEqual([refused, asks, advance, full])
    for (const ask of ['before', 'changes'] as const)
      expect(levels('high', viewed, { ask, unlistedCommands: 'block' })).toEqual([refused, blocked, blocked, full])
    expect(levels('medium', viewed, { ask: 'before', unlistedCommands: 'block' })).toEqual([refused, asks, advance, full])
  })

  test('that gets network asks before it runs, by the names of the hosts, with --auto too', () => {
    const network = { ...viewed, hosts: ['a.org', 'b.org'], beyond: ['b.org'] }
    const ask = 'ask autonomy.network_asks'
    for (const risk of risks) expect(levels(risk, network)).toEqual([refused, ask, ask, ask])
    for (const risk of ['medium', 'high'] as const) {
      expect(levels(risk, { ...network, beyond: [] })).toEqual([refused, ask, ask, full])
      expect(levels(risk, network, { egress: 'open' })).toEqual([refused, ask, ask, full])
      expect(levels(risk, { ...network, transaction: false })).toEqual([refused, ask, ask, ask])
    }
    const { reason, risk } = permit(rated('low', { command: network }), { ...usual, autonomy: 'supervised' })
    expect(reason).toContain('a.org, b.org (not in allowed_domains: b.org)')
    expect(risk).toBe('high')
  })

  test('that works on the workspace itself asks at every level, and in full only a setting answers', () => {
    const [ask, denied] = ['ask autonomy.direct_asks', 'deny autonomy.direct_refused']
    const direct = { ...viewed, direct: true }
    for (const risk of risks) {
      const low = risk === 'low' ? 'allow autonomy.low' : full
      expect(levels(risk, direct).slice(1)).toEqual([ask, ask, ask])
      expect(levels(risk, direct, { direct: 'allow' }).slice(1)).toEqual([ask, ask, low])
      expect(levels(risk, direct, { direct: 'deny' }).slice(1)).toEqual([denied, denied, denied])
      expect(said('supervised', rated(risk, { command: direct, always: true }))).toBe(ask)
    }
    const networked = permit(rated('high', { command: { ...direct, hosts: ['a.org'], beyond: ['a.org'] } }), { ...usual, autonomy: 'full' })
    expect([networked.rule, networked.reason]).toEqual([
      'autonomy.network_asks',
      expect.stringMatching(/a\.org.*without a private view.*undone exactly/),
    ])
    expect(levels('high', { ...viewed, direct: true }, { unlistedCommands: 'block' })[1]).toBe(blocked)
  })

  test('that only reads runs at every level', () => {
    for (const command of [unconfined, boxed, viewed]) expect(new Set(levels('low', command))).toEqual(new Set(['allow autonomy.low']))
  })
})

test('full runs whatever reached it', () => {
  expect(risks.map((risk) => said('full', rated(risk, { reads: false })))).toEqual([
    'allow autonomy.low',
    'allow autonomy.full',
    'allow autonomy.full',
  ])
})

test('a stricter level never permits more than a laxer one', () => {
  const rank = { deny: 0, ask: 1, allow: 2 }
  const flags = [true, false]
  const hosts = [[], ['a.org']]
  const settings = flags.flatMap((auto) =>
    (['changes', 'before'] as const).flatMap((ask) =>
      (['ask', 'block'] as const).map((unlistedCommands) => ({
        ...usual,
        approveAllMedium: auto,
        ask,
        unlistedCommands,
        direct: ask === 'before' ? ('allow' as const) : ('ask' as const),
      })),
    ),
  )
  const commands = [unconfined, boxed, viewed].flatMap((facts) =>
    hosts.flatMap((some) => flags.map((direct) => ({ ...facts, hosts: some, beyond: some, direct }))),
  )
  for (const risk of risks)
    for (const reads of flags)
      for (const command of [undefined, ...commands])
        for (const setting of settings) {
          const call = rated(risk, { reads, command })
          const [least, middle, most] = autonomies.map((autonomy) => permit(call, { ...setting, autonomy }))
          expect(rank[least?.verdict ?? 'allow']).toBeLessThanOrEqual(rank[middle?.verdict ?? 'deny'])
          expect(rank[middle?.verdict ?? 'allow']).toBeLessThanOrEqual(rank[most?.verdict ?? 'deny'])
        }
})

test('the risk of a call is its riskiest part, the first of equals', () => {
  const [a, b, c] = [
    { risk: 'medium' as const, reason: 'a' },
    { risk: 'medium' as const, reason: 'b' },
    { risk: 'high' as const, reason: 'c' },
  ]
  expect(highest(a, [b])).toBe(a)
  expect(highest(a, [b, c])).toBe(c)
  expect(highest(c, [a])).toBe(c)
  expect(highest({ risk: 'low', reason: 'd' }, [a])).toBe(a)
})

test('paths: seed risks inside the workspace, one step higher outside', () => {
  expect(pathRisk({ access: 'read', inside: true }).risk).toBe('low')
  expect(pathRisk({ access: 'write', inside: true })).toEqual({ risk: 'medium', reason: 'writes to workspace' })
  expect(pathRisk({ access: 'read', inside: false }).risk).toBe('medium')
  expect(pathRisk({ access: 'write', inside: false }).risk).toBe('high')
})

describe('a request to a host that allowed_domains does not list', () => {
  const far = (reads: boolean): RequestFacts => ({ beyond: ['evil.net'], reads })
  const said4 = (reads: boolean, more: Partial<Levels> = {}) => {
    const call = rated(reads ? 'medium' : 'high', { reads, request: far(reads), always: true })
    return [
      said('readonly', call, more),
      said('supervised', call, more),
      said('supervised', call, { ...more, approveAllMedium: true }),
      said('full', call, more),
    ]
  }
  const [refused, asks] = ['deny autonomy.readonly', 'ask autonomy.network_asks']

  test('asks at every level above readonly, also after a yes in advance or always', () => {
    for (const reads of [true, false]) expect(said4(reads)).toEqual([refused, asks, asks, asks])
  })
  test('asks where egress is open too, but for what runs by itself: reading with --auto, and full', () => {
    expect(said4(true, { egress: 'open' })).toEqual([refused, asks, 'allow autonomy.approve_all_medium', 'allow autonomy.full'])
    expect(said4(false, { egress: 'open' })).toEqual([refused, asks, asks, 'allow autonomy.full'])
  })
  test('is blocked where it sends and unlisted commands are', () => {
    expect(said4(false, { unlistedCommands: 'block' })).toEqual([refused, 'deny autonomy.high_blocked', 'deny autonomy.high_blocked', asks])
    expect(said4(true, { unlistedCommands: 'block' })).toEqual([refused, asks, asks, asks])
  })
  test('does not concern a host that is listed', () => {
    const listed = { beyond: [], reads: false }
    expect(said('full', rated('medium', { reads: false, request: listed }))).toBe('allow autonomy.full')
    expect(said('supervised', rated('medium', { reads: false, request: listed }), { approveAllMedium: true })).toBe(
      'allow autonomy.approve_all_medium',
    )
  })
})
