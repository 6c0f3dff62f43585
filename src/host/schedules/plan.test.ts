import { expect, test } from 'bun:test'
import { type Planned, planStep, type ScheduleStep } from './timing.ts'

const [minute, hour] = [60_000, 3_600_000]
const noon = Date.parse('2026-05-12T12:00:00Z')
const hourly = { kind: 'cron', expression: '0 * * * *', zone: 'UTC' } as const

const schedule = (own: Partial<Planned> = {}): Planned => ({
  timing: hourly,
  missed: 'run-once',
  overlap: 'skip',
  checked: noon,
  isRunning: false,
  ...own,
})

/** Follows the clock as the scheduler does, with the rows that the database would hold. */
function follow(own: Partial<Planned>, clock: readonly number[]) {
  const state = { checked: own.checked ?? noon }
  const fired = new Map<number, number>()
  for (const now of clock) {
    for (let step: ScheduleStep = { do: 'nothing' }, more = true; more; ) {
      step = planStep(schedule({ ...own, checked: state.checked }), now)
      more = step.do !== 'nothing'
      if (step.do === 'rewind') state.checked = step.checked
      if (step.do === 'fire' && !fired.has(step.due)) fired.set(step.due, now)
      if (step.do === 'fire' || step.do === 'leave') state.checked = step.due
    }
  }
  return [...fired.keys()].map((due) => (due - noon) / hour)
}

test('a due time is started when it has come, and not before', () => {
  expect(planStep(schedule(), noon + hour - 1)).toEqual({ do: 'nothing' })
  expect(planStep(schedule(), noon + hour)).toEqual({ do: 'fire', due: noon + hour, passedOver: 0 })
})

test.each([
  ['run-once', { do: 'fire', due: noon + 3 * hour, passedOver: 2 }],
  ['skip', { do: 'leave', state: 'missed', due: noon + 3 * hour, passedOver: 2 }],
  ['run-all', { do: 'fire', due: noon + hour, passedOver: 0 }],
] as const)('after a downtime of three due times the policy %s decides', (missed, expected) => {
  expect(planStep(schedule({ missed }), noon + 3 * hour + 10 * minute)).toEqual(expected)
})

test('a due time of a moment ago was not missed, whatever the policy', () => {
  expect(planStep(schedule({ missed: 'skip' }), noon + hour + minute)).toMatchObject({ do: 'fire', due: noon + hour })
})

test('run-all starts each due time, oldest first, and never more than a hundred', () => {
  expect(follow({ missed: 'run-all' }, [noon + 3 * hour + minute])).toEqual([1, 2, 3])
  const planned = planStep(schedule({ missed: 'run-all' }), noon + 500 * hour)
  expect(planned).toEqual({ do: 'fire', due: noon + 401 * hour, passedOver: 400 })
})

test('while a run is under way the next due time is left out, or waits and is then not missed', () => {
  const now = noon + hour
  expect(planStep(schedule({ isRunning: true }), now)).toMatchObject({ do: 'leave', state: 'skipped', due: now })
  expect(planStep(schedule({ isRunning: true, overlap: 'wait' }), now)).toEqual({ do: 'nothing' })
  const later = now + 20 * minute
  expect(planStep(schedule({ overlap: 'wait', missed: 'skip', lastEnded: later }), later)).toMatchObject({ do: 'fire', due: now })
})

const ticks = (from: number, to: number) => Array.from({ length: (to - from) / minute + 1 }, (_, each) => from + each * minute)

test('a clock that jumps forward and back starts every due time of the right clock once', () => {
  const clock = [...ticks(noon, noon + 30 * minute), noon + 5 * hour + 30 * minute, ...ticks(noon + 31 * minute, noon + 7 * hour)]
  const started = follow({}, clock)
  expect(started.sort()).toEqual([1, 2, 3, 4, 5, 6, 7])
})

test('a clock that was wrong by seventy years for a moment blocks nothing', () => {
  expect(follow({}, [noon + minute, noon + 70 * 8_766 * hour, ...ticks(noon + 2 * minute, noon + 2 * hour)]).slice(-2)).toEqual([1, 2])
})

test('a clock that is set back by two hours starts nothing a second time', () => {
  const clock = [...ticks(noon, noon + 3 * hour), ...ticks(noon + hour, noon + 4 * hour)]
  expect(follow({}, clock)).toEqual([1, 2, 3, 4])
})
