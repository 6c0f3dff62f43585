import { describe, expect, test } from 'bun:test'
import type { ChangeReview } from '../changes.ts'
import type { Judgement } from '../event.ts'
import type { ReplayEntry } from './external-entry.ts'
import { limits, live, type Script, yes } from './recorded.fixture.ts'
import { rejudge } from './rejudge.ts'
import { replayRun } from './replay.ts'

const review = (id: string, verdict: ChangeReview['verdict']): ChangeReview => ({
  digest: id.repeat(64),
  verdict,
  rule: `changes.${verdict}`,
  reason: 'because',
  summary: `1 new file: ${id}`,
  count: 1,
})

const script: Script = {
  replies: [{ calls: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] }, { text: 'done' }],
  reviews: { a: review('a', 'apply'), b: review('b', 'ask'), c: review('c', 'deny') },
}

const recorded = () => live(script, yes)
const at = (entries: readonly ReplayEntry[], type: string) => entries.findIndex((entry) => entry.type === type)
const edited = (entries: readonly ReplayEntry[], type: string, change: (body: object) => object) =>
  entries.map((entry, place) =>
    place === at(entries, type) && typeof entry.body === 'object' && entry.body !== null ? { ...entry, body: change(entry.body) } : entry,
  )

test('a run with changes that are applied, asked about and dropped replays to the same events', async () => {
  const { entries, runId, shown } = await recorded()
  expect(
    entries
      .map(({ type }) => type)
      .filter((type) => ['apply', 'drop', 'tool.changed'].includes(type))
      .sort(),
  ).toEqual(['apply', 'apply', 'drop', 'tool.changed', 'tool.changed', 'tool.changed'])
  const { events, divergence, ended } = replayRun({ runId, entries, limits })
  expect([divergence, ended]).toEqual([undefined, true])
  expect(events).toEqual(shown)
})

describe('an altered record diverges', () => {
  test.each<[string, (entries: readonly ReplayEntry[]) => ReplayEntry[], string]>([
    ['an application is taken out', (entries) => entries.toSpliced(at(entries, 'apply'), 1), 'apply a'],
    ['a drop is taken out', (entries) => entries.toSpliced(at(entries, 'drop'), 1), 'drop c'],
    ['another digest is applied', (entries) => edited(entries, 'apply', (body) => ({ ...body, review: review('f', 'apply') })), 'apply a'],
    ['another reason is given for a drop', (entries) => edited(entries, 'drop', (body) => ({ ...body, reason: 'x' })), 'drop c'],
    [
      'a refused review is made a permitted one',
      (entries) =>
        entries.map((entry) => ({
          ...entry,
          body: JSON.parse(JSON.stringify(entry.body).replace('"verdict":"deny"', '"verdict":"apply"')),
        })),
      'apply c',
    ],
    [
      'an emergency stop is put in before an application',
      (entries) =>
        entries.toSpliced(at(entries, 'apply'), 0, { seq: 0, kind: 'external', type: 'estop', body: { type: 'estop', reason: 'stopped' } }),
      'apply a',
    ],
    ['a yes is taken out', (entries) => entries.toSpliced(at(entries, 'approval.decision'), 1), 'apply b'],
    [
      'a report of changes has no review',
      (entries) => edited(entries, 'tool.changed', ({ ...body }) => ({ ...body, review: null })),
      'nothing',
    ],
  ])('%s', async (_, alter, told) => {
    const { entries, runId } = await recorded()
    expect(replayRun({ runId, entries: alter(entries), limits }).divergence?.message).toContain(told)
  })
})

test('what the next start wrote about undecided changes after a crash is no divergence', async () => {
  const { entries, runId } = await live(
    { ...script, reviews: { b: review('b', 'ask') }, replies: [{ calls: [{ id: 'b' }] }, { text: 'x' }] },
    yes,
  )
  const killed = entries.slice(0, at(entries, 'tool.changed') + 1)
  const body = { type: 'drop', id: 'b', by: 'interrupted', reason: 'x', result: { status: 'denied', output: '' } }
  const repaired = [...killed, { seq: 900, kind: 'note' as const, type: 'drop', body }]
  expect(replayRun({ runId, entries: repaired, limits })).toMatchObject({ ended: false })
  expect(replayRun({ runId, entries: repaired, limits }).divergence).toBeUndefined()
})

describe('what another policy would have said of changes', () => {
  const judge = (): Judgement => ({ verdict: 'allow', risk: 'low', rule: 'r', reason: 'r', plan: 'p', summary: 's', writes: [] })

  test('those that are kept are reviewed again, and the first difference is shown', async () => {
    const { entries } = await recorded()
    const { changes, divergence } = await rejudge({
      entries,
      limits,
      judge,
      review: ({ id }) => (id === 'a' ? review('a', 'deny') : undefined),
    })
    expect(changes?.map(({ id, before, after, changed }) => [id, before.verdict, after?.verdict, changed])).toEqual([
      ['a', 'apply', 'deny', true],
      ['b', 'ask', undefined, false],
      ['c', 'deny', undefined, false],
    ])
    expect(divergence).toEqual({ before: 'apply a', after: 'drop a' })
  })

  test('those that are no longer kept stay as they were reviewed', async () => {
    const { entries } = await recorded()
    expect((await rejudge({ entries, limits, judge })).divergence).toBeUndefined()
  })

  test('a run without changes says nothing about them', async () => {
    const { entries } = await live({ replies: [{ calls: [{ id: 'a' }] }, { text: 'done' }] })
    expect('changes' in (await rejudge({ entries, limits, judge }))).toBe(false)
  })
})
