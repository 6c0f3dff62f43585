import { expect, test } from 'bun:test'
import { nextDue, nextDues, pastDues, type Timing } from './timing.ts'

const berlin = (expression: string): Timing => ({ kind: 'cron', expression, zone: 'Europe/Berlin' })
const at = (text: string) => Date.parse(text)
const iso = (times: readonly number[]) => times.map((each) => new Date(each).toISOString().slice(0, 16))

test('on the night that leaves out an hour, a time in that hour is due once, an hour later', () => {
  expect(iso(nextDues(berlin('30 2 * * *'), at('2026-03-28T12:00Z'), 3))).toEqual([
    '2026-03-29T01:30',
    '2026-03-30T00:30',
    '2026-03-31T00:30',
  ])
  expect(iso(nextDues(berlin('15 2,3 * * *'), at('2026-03-29T00:00Z'), 2))).toEqual(['2026-03-29T01:15', '2026-03-30T00:15'])
})

test('on the night that repeats an hour, a time in that hour is due once, wherever the search begins', () => {
  expect(iso(nextDues(berlin('30 2 * * *'), at('2026-10-24T12:00Z'), 2))).toEqual(['2026-10-25T00:30', '2026-10-26T01:30'])
  for (const between of ['2026-10-25T00:30Z', '2026-10-25T00:45Z', '2026-10-25T01:15Z', '2026-10-25T01:30Z'])
    expect(iso(nextDues(berlin('30 2 * * *'), at(between), 1))).toEqual(['2026-10-26T01:30'])
})

test('an expression for every half hour goes on through both nights without a gap and without a double', () => {
  for (const night of ['2026-03-28T22:00Z', '2026-10-24T22:00Z']) {
    const due = nextDues(berlin('*/30 * * * *'), at(night), 12)
    expect(due).toEqual(Array.from({ length: 12 }, (_, each) => at(night) + (each + 1) * 1_800_000))
  }
})

test('the zone decides, whatever zone the process has', () => {
  expect(iso(nextDues({ kind: 'cron', expression: '0 9 * * *', zone: 'Asia/Tokyo' }, at('2026-06-01T00:00Z'), 2))).toEqual([
    '2026-06-02T00:00',
    '2026-06-03T00:00',
  ])
})

test('an interval is counted from its anchor, and a single time is due once', () => {
  const every: Timing = { kind: 'every', everyMs: 1_000, anchor: 500 }
  expect([0, 500, 1_499, 1_500, 1_501].map((after) => nextDue(every, after))).toEqual([1_500, 1_500, 1_500, 2_500, 2_500])
  expect([0, 9, 10, 11].map((after) => nextDue({ kind: 'at', at: 10 }, after))).toEqual([10, 10, undefined, undefined])
})

test('of a gap of years only the last month is returned, and a yearly time is still found', () => {
  const [long, now] = [at('2001-01-01T00:00Z'), at('2026-06-15T00:00Z')]
  expect(pastDues(berlin('* * * * *'), long, now).length).toBeLessThan(45_000)
  expect(iso(pastDues(berlin('0 0 1 1 *'), long, now))).toEqual(['2025-12-31T23:00'])
  expect(iso(pastDues(berlin('0 0 29 2 *'), long, now))).toEqual([
    '2004-02-28T23:00',
    '2008-02-28T23:00',
    '2012-02-28T23:00',
    '2016-02-28T23:00',
    '2020-02-28T23:00',
    '2024-02-28T23:00',
  ])
})
