import { expect, test } from 'bun:test'
import type { ScheduleRow } from '../../memory/schedule-store.ts'
import { type RunOptions, runSchedule } from './run-schedule.ts'

const row: ScheduleRow = {
  ...{ id: 'schedule_1', name: 'report', kind: 'cron', spec: '0 * * * *', zone: 'UTC', anchor: 0, message: '/sop work', workspace: '/w' },
  ...{ agent: null, autonomy: null, conversation: 'new', channel: null, recipient: null, checkCommand: null, missed: 'run-once' },
  ...{ overlap: 'skip', pauseAfter: 5, state: 'active', why: '', checked: 0, failures: 0, created: 0, madeInChat: 0 },
}

test('a schedule that a chat made begins no procedure, one of the operator does', async () => {
  const begun: string[] = []
  // The parts of a host that it uses; a turn cannot begin here.
  const options = {
    host: { setup: { config: { security: {} } }, conversation: () => Promise.reject(new Error('a turn')) },
    turns: { procedure: async (text: string) => String(begun.push(text)) },
  } as unknown as RunOptions
  const progress = { opened() {}, began() {} }
  expect(await runSchedule({ ...row, madeInChat: 1 }, options, progress)).toMatchObject({ state: 'bad', message: 'a turn' })
  expect(begun).toEqual([])
  expect(await runSchedule(row, options, progress)).toMatchObject({ state: 'good' })
  expect(begun).toEqual(['/sop work'])
})
