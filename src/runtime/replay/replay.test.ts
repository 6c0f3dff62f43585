import { describe, expect, test } from 'bun:test'
import type { AnyThread } from '../../kernel/thread.ts'
import type { AgentEvent, RunEvent } from '../event.ts'
import { messagesDigest } from '../request/turn-messages.ts'
import { parseRules } from '../rules/parse-rules.ts'
import { ruleThread } from '../rules/rule-thread.ts'
import type { ReplayEntry } from './external-entry.ts'
import { limitsOf } from './journal-reader.ts'
import { eventful, limits, live, type Script, yes } from './recorded.fixture.ts'
import { replayRun } from './replay.ts'

const lines = (events: readonly AgentEvent[]) => events.map((event) => JSON.stringify(event)).join('\n')

/** Blocks one call and requests no denial. */
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
    [
      'that went round in circles',
      { replies: ['a1', 'a2', 'a3'].map((id) => ({ calls: [{ id, input: { path: 'x' } }] })), limits: { maxSameResults: 2 } },
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
    // Runs recorded when a gate was named by its call alone still replay.
    const counted = lines(shown).replaceAll(`"gateId":"${runId}/`, '"gateId":"')
    expect(replay.digest).toBe(new Bun.CryptoHasher('sha256').update(`${counted}\n`).digest('hex'))
  })
})

function digestOf(entries: readonly ReplayEntry[]): string {
  const body = entries.at(-1)?.body
  return typeof body === 'object' && body !== null && 'digest' in body ? String(body.digest) : 'none'
}

/** Returns the journal with one value changed somewhere in one body. */
const altered = (entries: readonly ReplayEntry[], type: string, from: string, to: string) =>
  entries.map((entry) => (entry.type === type ? { ...entry, body: JSON.parse(JSON.stringify(entry.body).replace(from, to)) } : entry))

describe('an altered journal', () => {
  const run = live(eventful, yes)
  const diverges = async (change: (entries: ReplayEntry[]) => ReplayEntry[]) => {
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
  const interrupted: ReplayEntry = {
    seq: 999,
    kind: 'note',
    type: 'interrupted',
    body: { message: 'the process ended before the run did' },
  }
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

test('a run from before there was a rule against circles has none: its limits do not name it', async () => {
  const { entries, runId } = await live({ replies: ['a1', 'a2', 'a3'].map((id) => ({ calls: [{ id, input: { path: 'x' } }] })) })
  const own = limitsOf(entries)
  expect(own).toEqual(limits)
  expect(replayRun({ runId, entries, limits: own ?? limits }).divergence).toBeUndefined()
  expect(replayRun({ runId, entries, limits: { ...limits, maxSameResults: 2 } }).divergence).toMatchObject({
    replayed: 'finish (limit)',
    journalled: 'model.done',
  })
})

test('the limits of a run are read from its start, and nothing else passes for them', () => {
  const start = (more: unknown): ReplayEntry[] => [
    { seq: 1, kind: 'external', type: 'run.start', body: { type: 'run.start', limits: more } },
  ]
  expect(limitsOf(start({ ...limits, maxMs: 5 }))).toEqual({ ...limits, maxMs: 5 })
  for (const odd of [undefined, null, {}, { maxToolRounds: 1 }, { ...limits, maxMs: 'x' }, { ...limits, maxSameResults: 'x' }])
    expect(limitsOf(start(odd))).toBeUndefined()
})

describe('what a person said during the run', () => {
  const steered = () =>
    live({ replies: [{ calls: [{ id: 'a' }] }, { text: 'over' }], verdicts: { a: { verdict: 'ask' } } }, async (event, agent) => {
      if (event.type !== 'approval_gate') return
      void agent.steer('and b')
      await agent.approve(event.gateId, { allow: true, by: 'ann' })
    })

  test('is in the messages of the next request, as a trim finds them', async () => {
    const { entries, runId } = await steered()
    const at = entries.findIndex(({ type }) => type === 'tool.done') + 1
    expect(entries.slice(0, at).map(({ type }) => type)).toContain('steer')
    const [asked, reply] = [
      { role: 'user', content: 'go' } as const,
      entries.find(({ type }) => type === 'model.done')?.body as { parts: [] },
    ]
    const result = { role: 'tool', callId: 'a', name: 'tool', content: 'did a', isError: false } as const
    const messages = [
      asked,
      { role: 'assistant', parts: reply.parts, isAfterTrim: true } as const,
      result,
      { role: 'user', content: 'and b' } as const,
    ]
    const trim = { window: 1, before: 2, after: 1, lines: [], omitted: 0, readable: true }
    const body = { type: 'context.trimmed', ...trim, digest: messagesDigest(messages) }
    const trimmed: ReplayEntry = { seq: 200, kind: 'external', type: 'context.trimmed', body }
    expect(replayRun({ runId, entries: [...entries.slice(0, at), trimmed], limits }).divergence).toBeUndefined()
  })

  test('cannot be moved into a request, or given another text', async () => {
    const { entries, runId } = await steered()
    expect(replayRun({ runId, entries, limits }).divergence).toBeUndefined()
    const steer = entries.find(({ type }) => type === 'steer') as ReplayEntry
    const others = entries.filter((entry) => entry !== steer)
    const moved = [...others.slice(0, 1), steer, ...others.slice(1)]
    expect(replayRun({ runId, entries: moved, limits }).divergence?.replayed).toBe('a refusal of it by loop')
    const broken = entries.map((entry) => (entry === steer ? { ...entry, body: { type: 'steer' } } : entry))
    expect(replayRun({ runId, entries: broken, limits }).divergence?.journalled).toContain('which is not what a run writes')
  })
})
