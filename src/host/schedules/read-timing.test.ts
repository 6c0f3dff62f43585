import { expect, test } from 'bun:test'
import type { WrittenTiming } from '../contract/schedules-api.ts'
import { FailureError } from '../failure.ts'
import { readTiming, readZone } from './read-timing.ts'

const now = Date.parse('2026-05-12T12:00:00Z')

function read(written: WrittenTiming, zone = 'Europe/Berlin') {
  try {
    return readTiming(written, { now, zone })
  } catch (error) {
    if (error instanceof FailureError) return `${error.code}: ${error.message}`
    throw error
  }
}

const instant = (text: string) => ({ kind: 'at' as const, at: Date.parse(text) })

test.each([
  ['in 20m', '2026-05-12T12:20:00Z'],
  ['in 1h30m', '2026-05-12T13:30:00Z'],
  ['18:30', '2026-05-12T16:30:00Z'],
  ['9:05', '2026-05-13T07:05:00Z'],
  ['2026-12-24 09:00', '2026-12-24T08:00:00Z'],
  ['2026-12-24T09:00:30', '2026-12-24T08:00:30Z'],
  ['2026-12-24', '2026-12-23T23:00:00Z'],
  ['2026-12-24T09:00:00Z', '2026-12-24T09:00:00Z'],
  ['2026-12-24T09:00:00+05:30', '2026-12-24T03:30:00Z'],
  // The hour is left out that night, and repeated half a year later.
  ['2027-03-28 02:30', '2027-03-28T01:30:00Z'],
  ['2026-10-25 02:30', '2026-10-25T00:30:00Z'],
])('the time "%s" is understood', (text, expected) => {
  expect(read({ at: text })).toEqual(instant(expected))
})

test.each([
  [{ at: 'tomorrow' }, 'usage: --at "tomorrow" is not a time; write "in 20m"'],
  [{ at: '2026-02-30 10:00' }, 'usage: --at "2026-02-30 10:00" is not a time'],
  [{ at: '25:00' }, 'usage: --at "25:00" is not a time'],
  [{ at: '2026-05-12 13:59' }, 'usage: --at "2026-05-12 13:59" is 2026-05-12T11:59:00.000Z, and that is past'],
  [{ at: 'in 0m' }, 'usage: --at "in 0m" is 2026-05-12T12:00:00.000Z, and that is past'],
  [{ every: '5' }, 'usage: --every "5" is not an interval; write one like 30m'],
  [{ every: '9s' }, 'usage: --every "9s": an interval is from 10s to 366d'],
  [{ every: '999999w' }, 'usage: --every "999999w": an interval is from 10s to 366d'],
  [{ cron: '61 * * * *' }, 'usage: --cron "61 * * * *": value out of range for field; write minute, hour'],
  [{ cron: '* * * *' }, 'usage: --cron "* * * *": expected 5'],
  [{ cron: '0 0 30 2 *' }, 'usage: --cron "0 0 30 2 *" is never due'],
  [{}, 'usage: say when with exactly one of --at, --every and --cron'],
  [{ every: '5m', cron: '@daily' }, 'usage: say when with exactly one of --at, --every and --cron'],
])('%j is refused with the reason', (written, expected) => {
  expect(read(written)).toStartWith(expected)
})

test('a zone is checked, and a misspelt one is recognised', () => {
  expect(readZone('europe/berlin')).toBe('Europe/Berlin')
  expect(() => readZone('Europe/Berln')).toThrow('--tz "Europe/Berln" is not a time zone; did you mean "Europe/Berlin"?')
  expect(() => readZone('Europe/Ljubl', '--zone')).toThrow('--zone "Europe/Ljubl" is not a time zone; did you mean "Europe/Ljubljana"?')
  expect(() => readZone('')).toThrow('--tz "" is not a time zone')
  for (const offset of ['+02:00', '-0530', '+02'])
    expect(() => readZone(offset)).toThrow(`--tz "${offset}" is not a time zone; write one like Europe/Berlin, Etc/GMT-2`)
  expect(['Etc/GMT-2', 'utc', 'CET', 'asia/kolkata'].map((zone) => readZone(zone))).toEqual(['Etc/GMT-2', 'UTC', 'CET', expect.any(String)])
})
