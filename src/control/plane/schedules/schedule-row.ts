/** Reads schedules as they travel, and checks those that people write. */

import { FailureError } from '../../../host/failure.ts'
import { readTiming, readZone } from '../../../host/schedules/read-timing.ts'
import type { Timing } from '../../../host/schedules/timing.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type ControlSchedule, type ScheduleDraft, scheduleDraft } from '../../contract/schedule-shapes.ts'
import type { Row } from '../../contract/store-port.ts'
import { idOrNull } from '../context.ts'
import { flag, int, intOrNull, text, time, timeOrNull } from '../row.ts'

export function scheduleId(number: number): string {
  return `SCHED-${String(number).padStart(3, '0')}`
}

export function draftOf(row: Row): ScheduleDraft {
  return scheduleDraft.parse(JSON.parse(text(row, 'draft')))
}

export function scheduleOf(row: Row): ControlSchedule {
  return {
    ...draftOf(row),
    enabled: flag(row, 'enabled'),
    schedule_id: scheduleId(int(row, 'id')),
    next_at: timeOrNull(row, 'next_at'),
    last_fired_at: timeOrNull(row, 'last_fired_at'),
    last_task_id: idOrNull('TASK', intOrNull(row, 'last_task_id')),
    created_at: time(row, 'created_at'),
  }
}

/** An interval is counted from `anchor`, the time when the schedule was made. @throws PlaneRefusal bad_request */
export function timingOf({ cron, every, timezone }: ScheduleDraft, anchor: number): Timing {
  try {
    const zone = readZone(timezone)
    if ((cron === undefined) === (every === undefined)) throw new FailureError('usage', 'give exactly one of "cron" and "every"')
    return readTiming({ ...(cron === undefined ? {} : { cron }), ...(every === undefined ? {} : { every }) }, { now: anchor, zone })
  } catch (error) {
    if (error instanceof FailureError)
      throw new PlaneRefusal('bad_request', error.message.replaceAll('--tz', 'timezone').replaceAll('--', ''))
    throw error
  }
}
