/** Tells which schedules should have been started by now. */

import type { ScheduleRow } from '../../memory/schedule-store.ts'
import { timingOf } from './schedule-view.ts'
import { nextDue } from './timing.ts'

export function overdueNames(rows: readonly ScheduleRow[], now: number): readonly string[] {
  return rows.flatMap((row) => {
    const due = row.state === 'active' ? nextDue(timingOf(row), row.checked) : undefined
    return due !== undefined && due <= now ? [row.name] : []
  })
}
