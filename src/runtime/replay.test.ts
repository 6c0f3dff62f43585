import { describe, expect, test } from 'bun:test'
import type { AnyThread } from '../kernel/thread.ts'
import { type Agent, type AgentConfig, createAgent } from './agent.ts'
import type { AgentEvent, Judgement, Part, RunEvent } from './event.ts'
import { type Entry, limitsOf } from './journalled.ts'
import { ProviderFailure, type Recorder } from './port.ts'
import { rejudge } from './rejudge.ts'
import { replayRun } from './replay.ts'
import { parseRules } from './rules/rule.ts'
import { ruleThread } from './rules/thread.ts'

const limits = { maxToolRounds: 5, maxParallel: 4 }

type Script = {
  replies: {
    text?: string
    thinking?: string
    calls?: { id: string; input?: { [name: string]: string } }[]
    fail?: boolean
    pieces?: number
  }[]
  verdicts?: { [id: string]: Partial<Judgement> }
  limits?: Partial<typeof limits>
  rules?: AnyThread<RunEvent>[]
}

/** A run by the real agent, and what its recorder was given, as it comes back from disk. */
async function live(script: Script, on?: (event: AgentEvent, agent: Agent) => void) {
  const written: Omit<Entry, 'seq'>[] = []
  const agent = createAgent({
    conversationId: 'c',
    channel: 'test',
    history: () => [],
    approvalTtlMs: 60_000,
    limits: { ...limits, ...script.limits },
    request: { systemPrompt: 's', tools: [], model: 'scripted' },
    rules: script.rules,
    ports: { ...ports(script), recorder: recorder((entry) => void written.push(entry)) },
  })
  const events: AgentEvent[] = []
  for await (const event of agent.run('go')) {
    events.push(event)
    on?.(event, agent)
  }
  const entries: Entry[] = written.map((entry, at) => ({ ...entry, seq: 100 + at, body: JSON.parse(JSON.stringify(entry.body)) }))
  return { entries, runId: agent.runId() ?? '', shown: events.filter((event) => event.type !== 'text' || !event.isPartial) }
}

function recorder(write: (entry: Omit<Entry, 'seq'>) => void): Recorder {
  return {
    together: (step) => step(),
    external(_run, event) {
      write({
        kind: 'external',
        type: event.type,
        body: event.type === 'tool.done' ? { ...event, outcome: { ...event.outcome, receipt: 'rcp' } } : event,
      })
      return event
    },
    intent: (_run, act) => write({ kind: 'intent', type: 'act', body: act }),
    denied(_run, deny) {
      write({ kind: 'note', type: 'deny', body: { ...deny, receipt: 'rcp' } })
      return 'rcp'
    },
    finished: (_run, finish, digest) => write({ kind: 'note', type: 'finish', body: { ...finish, digest } }),
  }
}

function ports({ replies, verdicts = {} }: Script): Omit<AgentConfig['ports'], 'recorder'> {
  const asked = replies.values()
  return {
    provider: {
      name: 'scripted',
      capabilities: () => ({ streaming: true, tools: true, thinking: true, contextTokens: 100_000 }),
      async *chat() {
        const { text, thinking, calls = [], fail, pieces = 0 } = asked.next().value ?? {}
        if (fail) throw new ProviderFailure('auth', 'scripted')
        for (let piece = 0; piece < pieces; piece++) yield { type: 'text', text: 'x' }
        const parts: Part[] = [
          ...(thinking ? [{ type: 'thinking', text: thinking } as const] : []),
          ...(text ? [{ type: 'text', text } as const] : []),
          ...calls.map(({ id, input = {} }) => ({ type: 'call', id, name: 'tool', input }) as const),
        ]
        yield {
          type: 'done',
          response: { parts, stop: 'stop', usage: { inputTokens: 10, outputTokens: 5 }, model: 'scripted', provider: 'scripted' },
        }
      },
    },
    judge: async ({ id }) => ({
      verdict: 'allow',
      risk: 'low',
      rule: 'test',
      reason: 'test',
      plan: `plan-${id}`,
      summary: id,
      writes: [],
      ...verdicts[id],
    }),
    act: async ({ id }) =>
      id === 'd' ? { status: 'failed', output: 'half', error: 'it broke' } : { status: 'allowed', output: `did ${id}` },
    log: () => {},
    redact: (value) => value,
    redactStream: () => ({ push: (piece) => piece, flush: () => '' }),
    now: () => 1000,
    after: (ms, then) => {
      const timer = setTimeout(then, ms)
      return () => clearTimeout(timer)
    },
    random: (bytes) => new Uint8Array(bytes).fill(7),
  }
}

const lines = (events: readonly AgentEvent[]) => events.map((event) => JSON.stringify(event)).join('\n')
const yes = (event: AgentEvent, agent: Agent) => {
  if (event.type === 'approval_gate') agent.approve(event.gateId, { allow: true, by: 'ann' })
}
const eventful: Script = {
  replies: [
    { thinking: 'hm', text: 'I look', calls: [{ id: 'a', input: { b: '1', 2: 'x' } }, { id: 'b' }, { id: 'c' }] },
    { calls: [{ id: 'd' }], text: 'again' },
    { text: 'done: ü 😀 \u2028' },
  ],
  verdicts: { b: { verdict: 'deny', rule: 'path.outside', reason: 'no' }, c: { verdict: 'ask', risk: 'medium' } },
}

/** Blocks one call and asks for no denial. */
const stranding: AnyThread<RunEvent> = {
  name: 'stranding',
  priority: 15,
  init: null,
  bid: () => ({ block: [{ type: 'act', id: 'e' }] }),
  next: (state) => state,
}

describe('a replay is the run, byte for byte', () => {
  const cases: [string, Script, Parameters<typeof live>[1]?][] = [
    ['with an answer', { replies: [{ text: 'hi', pieces: 3 }] }],
    ['with calls that run, are refused, and are allowed by a person', eventful, yes],
    ['that failed', { replies: [{ fail: true }] }],
    [
      'that was cancelled',
      { replies: [{ calls: [{ id: 'a' }] }], verdicts: { a: { verdict: 'ask' } } },
      (event, agent) => event.type === 'approval_gate' && agent.cancel(),
    ],
    [
      'that was stopped',
      { replies: [{ calls: [{ id: 'a' }] }], verdicts: { a: { verdict: 'ask' } } },
      (event, agent) => event.type === 'approval_gate' && agent.stop('ESTOP'),
    ],
    [
      'that went over its limit',
      { replies: [{ calls: [{ id: 'a' }] }, { calls: [{ id: 'e' }, { id: 'f' }] }], limits: { maxToolRounds: 1 } },
    ],
    ['that stalled', { replies: [{ calls: [{ id: 'a' }, { id: 'e' }] }], rules: [stranding] }],
  ]
  test.each(cases.map(([name, script, on]) => ({ name, script, on })))('$name', async ({ script, on }) => {
    const { entries, runId, shown } = await live(script, on)
    const replay = replayRun({ runId, entries, limits: { ...limits, ...script.limits }, rules: script.rules })
    expect(replay.divergence).toBeUndefined()
    expect(lines(replay.events)).toBe(lines(shown))
    expect(replay.ended).toBe(true)
    expect(replay.digest).toBe(digestOf(entries))
    expect(replay.digest).toBe(new Bun.CryptoHasher('sha256').update(`${lines(shown)}\n`).digest('hex'))
  })
})

function digestOf(entries: readonly Entry[]): string {
  const body = entries.at(-1)?.body
  return typeof body === 'object' && body !== null && 'digest' in body ? String(body.digest) : 'none'
}

/** The journal with one value somewhere in one body changed. */
const altered = (entries: readonly Entry[], type: string, from: string, to: string) =>
  entries.map((entry) => (entry.type === type ? { ...entry, body: JSON.parse(JSON.stringify(entry.body).replace(from, to)) } : entry))

describe('an altered journal', () => {
  const run = live(eventful, yes)
  const diverges = async (change: (entries: Entry[]) => Entry[]) => {
    const { entries, runId } = await run
    return replayRun({ runId, entries: change([...entries]), limits }).divergence
  }
  const numberOf = async (type: string, nth = 0) => {
    const { entries } = await run
    return entries.flatMap((entry, at) => (entry.type === type ? [at + 1] : []))[nth]
  }

  test('with another verdict parts at the denial that then would not be', async () => {
    const found = await diverges((entries) => altered(entries, 'model.done', '"verdict":"deny"', '"verdict":"allow"'))
    expect(found).toMatchObject({ event: await numberOf('deny'), journalled: 'deny b by path.outside', replayed: 'act b' })
    expect(found?.message).toBe(`event ${found?.event}: the journal has deny b by path.outside, the replay act b`)
  })

  test('with another input in the reply parts at the act', async () => {
    expect(await diverges((entries) => altered(entries, 'model.done', '"b":"1"}},"judgement"', '"b":"2"}},"judgement"'))).toMatchObject({
      event: await numberOf('act'),
      seq: 100 + ((await numberOf('act')) ?? 0) - 1,
      journalled: 'act a with other contents',
    })
  })

  test('with another act parts there', async () => {
    expect(await diverges((entries) => altered(entries, 'act', '"b":"1"', '"b":"2"'))).toMatchObject({
      event: await numberOf('act'),
      journalled: 'act a with other contents',
    })
  })

  test('with another text, or another digest, parts at the end at the latest', async () => {
    const { entries } = await run
    expect(await diverges((all) => altered(all, 'model.done', 'I look', 'I lock'))).toMatchObject({
      event: entries.length,
      journalled: 'finish (answered) after another event stream',
    })
    expect(await diverges((all) => altered(all, 'finish', digestOf(all), 'f'.repeat(64)))).toMatchObject({ event: entries.length })
    expect(await diverges((all) => altered(all, 'finish', '"code":"answered"', '"code":"denied"'))).toMatchObject({
      journalled: 'finish (denied)',
      replayed: 'finish (answered)',
    })
  })

  test('without an entry, with one twice, or with two in another order parts where it shows', async () => {
    const { entries } = await run
    for (const [at, entry] of entries.entries()) {
      if (entry.type === 'finish') continue
      expect({ at, found: await diverges((all) => all.toSpliced(at, 1)) }).toMatchObject({
        at,
        found: { message: expect.stringContaining('event ') },
      })
      expect({ at, found: await diverges((all) => all.toSpliced(at, 0, entry)) }).toMatchObject({
        at,
        found: { message: expect.stringContaining('event ') },
      })
    }
    expect((await diverges((all) => all.toSpliced(1, 2, ...all.slice(1, 3).reverse())))?.event).toBe(2)
  })

  test('with a result for a call that never began is refused by name', async () => {
    const forged = {
      seq: 1,
      kind: 'external',
      type: 'tool.done',
      body: { type: 'tool.done', id: 'b', outcome: { status: 'allowed', output: 'x' } },
    } as const
    expect(await diverges((all) => all.toSpliced(2, 0, forged))).toMatchObject({ journalled: 'tool.done b' })
    expect(
      (await diverges((all) => [...all.filter(({ type }) => type !== 'finish').slice(0, 2), ...all.slice(2, 4), forged]))?.message,
    ).toContain('event ')
  })

  test.each([
    null,
    7,
    'text',
    [],
    {},
    { type: 'model.done' },
    { type: 'model.done', parts: [{}], proposals: [], usage: {}, model: 'm' },
    { type: 'act' },
  ])('with %j for a reply is named, and nothing throws', async (body) => {
    const { entries } = await run
    const at = entries.findIndex(({ type }) => type === 'model.done')
    expect(await diverges((all) => all.map((entry, place) => (place === at ? { ...entry, body } : entry)))).toMatchObject({
      event: at + 1,
      replayed: 'nothing',
    })
  })
})

test('a run that was killed has no end and is no divergence, up to where it got', async () => {
  const { entries, runId } = await live(eventful, yes)
  for (let length = 1; length < entries.length; length++) {
    const { divergence, ended } = replayRun({ runId, entries: entries.slice(0, length), limits })
    expect({ length, divergence, ended }).toEqual({ length, divergence: undefined, ended: false })
  }
  const interrupted: Entry = { seq: 999, kind: 'note', type: 'interrupted', body: { message: 'the process ended before the run did' } }
  expect(replayRun({ runId, entries: [...entries.slice(0, 3), interrupted], limits }).divergence).toBeUndefined()
})

test('other limits and other rules show where they make a difference', async () => {
  const { entries, runId } = await live(eventful, yes)
  const { rules } = parseRules({
    text: '{"name": "no", "on": {"type": "propose", "tool": "tool"}}',
    file: 'r.json',
    places: { workspace: '/w', home: '/h' },
  })
  const found = replayRun({ runId, entries, limits, rules: rules.map(ruleThread) })
  expect(found.divergence).toMatchObject({ journalled: 'act a', replayed: 'deny a by rule.no' })
  expect(replayRun({ runId, entries, limits: { ...limits, maxToolRounds: 0 } }).divergence).toMatchObject({
    journalled: 'act a',
    replayed: 'deny a by limits.max_tool_rounds',
  })
})

test('the limits of a run are read from its start, and nothing else passes for them', () => {
  const start = (more: unknown): Entry[] => [{ seq: 1, kind: 'external', type: 'run.start', body: { type: 'run.start', limits: more } }]
  expect(limitsOf(start({ ...limits, maxMs: 5 }))).toEqual({ ...limits, maxMs: 5 })
  for (const odd of [undefined, null, {}, { maxToolRounds: 1 }, { ...limits, maxMs: 'x' }]) expect(limitsOf(start(odd))).toBeUndefined()
})

describe('what another policy would have done', () => {
  const judge = (verdict: Judgement['verdict']) => (): Judgement => ({
    verdict,
    risk: 'low',
    rule: 'new.rule',
    reason: 'new',
    plan: 'other',
    summary: 'x',
    writes: [],
  })

  test('every call old and new, and the first place where it would have gone another way', async () => {
    const { entries } = await live(eventful, yes)
    const { calls, divergence } = await rejudge({ entries, limits, judge: judge('deny') })
    expect(calls.map(({ id, before, after, changed }) => [id, before.verdict, after.verdict, after.rule, changed])).toEqual([
      ['a', 'allow', 'deny', 'new.rule', true],
      ['b', 'deny', 'deny', 'new.rule', false],
      ['c', 'ask', 'deny', 'new.rule', true],
      ['d', 'allow', 'deny', 'new.rule', true],
    ])
    expect(calls.map(({ event }) => event)).toEqual([2, 2, 2, entries.findLastIndex(({ type }) => type === 'act')])
    expect(divergence).toEqual({ before: 'act a', after: 'deny a' })
  })

  test('the same verdicts by other rules with other plans are no other way', async () => {
    const { entries } = await live(eventful, yes)
    const old = new Map<string, Judgement['verdict']>([
      ['b', 'deny'],
      ['c', 'ask'],
    ])
    const { calls, divergence } = await rejudge({ entries, limits, judge: ({ id }) => judge(old.get(id) ?? 'allow')() })
    expect(calls.some(({ changed }) => changed)).toBe(false)
    expect(divergence).toBeUndefined()
  })

  test('a question that would no longer be asked is one', async () => {
    const { entries } = await live(eventful, yes)
    const { divergence } = await rejudge({ entries, limits, judge: ({ id }) => judge(id === 'b' ? 'deny' : 'allow')() })
    expect(divergence).toEqual({ before: 'gate.open c', after: 'act c' })
  })
})
