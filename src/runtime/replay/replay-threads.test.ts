import { expect, test } from 'bun:test'
import { isObject } from '../../kit/json.ts'
import type { AgentEvent } from '../event.ts'
import { prepareThread, prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread, Thread } from '../threads/thread.ts'
import { veto } from '../threads/thread.ts'
import { joinedThreads, missingThreads } from './journal-reader.ts'
import { eventful, limits, live, type Script, yes } from './recorded.fixture.ts'
import { rejudge } from './rejudge.ts'
import { replayRun } from './replay.ts'

const lines = (events: readonly AgentEvent[]) => events.map((event) => JSON.stringify(event)).join('\n')

/** Requests a call of its own after the first answer only. */
const tests: Thread<string> = {
  name: 'tests',
  init: 'new',
  bid: (phase) => ({
    wait: [{ type: 'model.done' }],
    request: phase === 'wants' ? [{ type: 'propose', id: 't1', call: { name: 'tests', input: {} } }] : [],
  }),
  next: (phase, event) => (event.type === 'propose' ? 'asked' : phase === 'new' ? 'wants' : phase),
}
const noB = veto('no-b', ({ id }) => id === 'b', { reason: 'b is not done here' })
const fails: Thread<null> = {
  ...noB,
  name: 'fails',
  bid: () => ({ wait: [{ type: 'act' }] }),
  next: () => {
    throw new Error('boom')
  },
}
const wall: Thread<null> = { ...noB, name: 'wall', bid: () => ({ block: [{ type: 'tool.done' }] }) }
const boom = (): boolean => {
  throw new Error('boom')
}
const chokes: Thread<null> = { ...noB, name: 'chokes', bid: () => ({ block: [{ type: 'tool.done', match: boom }, { type: 'observe' }] }) }
const ticks: Thread<null> = { ...noB, name: 'ticks', bid: () => ({ request: [{ type: 'user.tick' }] }) }

const cases: [string, Script, AnyUserThread[], Parameters<typeof live>[1]?][] = [
  ['a veto', eventful, [veto('no-a', ({ id }) => id === 'a')], yes],
  ['a call of its own', { replies: [{ text: 'hi' }, { text: 'and well' }] }, [tests]],
  ['a thread that fails', eventful, [fails], yes],
  ['a thread that will not have a result', eventful, [wall], yes],
  ['a thread whose match throws at a result', eventful, [chokes], yes],
  [
    'a thread that will not have the end',
    { replies: [{ calls: [{ id: 'a' }] }, { text: 'hi' }] },
    [{ ...wall, bid: () => ({ block: [{ type: 'finish' }] }) }],
  ],
  ['a thread that never rests', { replies: [{ text: 'hi' }] }, [ticks]],
  [
    'a thread that comes later',
    { replies: [{ calls: [{ id: 'a' }] }, { calls: [{ id: 'b' }] }, { text: 'done' }] },
    [],
    (event, agent) => (event.type === 'tool_result' && event.toolCallId === 'a' ? agent.addThread(prepareThread(noB)) : undefined),
  ],
]

test.each(cases.map(([name, script, threads, on]) => ({ name, script, threads, on })))(
  'a run with $name replays byte for byte with the same threads',
  async ({ script, threads, on }) => {
    const { entries, runId, shown } = await live({ ...script, threads }, on)
    const joined = prepareThreads([...threads, noB])
    expect(missingThreads(entries, joined)).toEqual([])
    const replay = replayRun({ runId, entries, limits, joined })
    expect(replay.divergence).toBeUndefined()
    expect([replay.ended, lines(replay.events)]).toEqual([true, lines(shown)])
    expect(entries.at(-1)?.body).toMatchObject({ digest: replay.digest })
  },
)

test('without the thread, or with another one of its name, both are named with their digests', async () => {
  const { entries } = await live({ ...eventful, threads: [noB] }, yes)
  const [first, other] = [prepareThreads([noB])[0]?.digest, prepareThreads([veto('no-b', () => false)])[0]?.digest]
  expect(joinedThreads(entries)).toEqual([{ name: 'user/no-b', digest: first ?? '' }])
  expect(missingThreads(entries, [])).toEqual([`the run had the thread "user/no-b" (digest ${first}), which is not given`])
  expect(missingThreads(entries, prepareThreads([veto('no-b', () => false)]))).toEqual([
    `the run had the thread "user/no-b" with the digest ${first}; the one given has ${other}`,
  ])
})

test('which threads took part counts for the digest of the run, also when they did nothing', async () => {
  const digests: unknown[] = []
  for (const threads of [[], [veto('idle', () => false)], [veto('other', () => false)]]) {
    const { entries } = await live({ ...eventful, threads }, yes)
    const body = entries.at(-1)?.body
    digests.push(isObject(body) ? body.digest : undefined)
  }
  expect([new Set(digests).size, digests.includes(undefined)]).toEqual([3, false])
})

test('the digest covers source, initial state, priority and what the source names', () => {
  const base = veto('x', () => true)
  const digest = (own: Partial<AnyUserThread>) => prepareThreads([{ ...base, ...own }])[0]?.digest
  const others = [{}, { init: 1 }, { priority: 3 }, { uses: [1] }, { bid: () => ({}) }, { next: () => null }].map(digest)
  expect(new Set(others).size).toBe(others.length)
  expect(digest({})).toBe(digest({}))
})

test('a call of a thread is judged anew as well', async () => {
  const { entries } = await live({ replies: [{ text: 'hi' }, { text: 'and well' }], threads: [tests] })
  const { calls } = await rejudge({
    entries,
    limits,
    judge: () => ({ verdict: 'deny', risk: 'high', rule: 'new', reason: 'new', plan: '', summary: '', writes: [] }),
  })
  expect(calls).toMatchObject([{ id: 't1', tool: 'tests', before: { verdict: 'allow' }, after: { verdict: 'deny' }, changed: true }])
})
