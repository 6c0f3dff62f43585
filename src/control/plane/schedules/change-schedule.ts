/** Adds, enables, disables and removes schedules. */

import { nextDue } from '../../../host/schedules/timing.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { ControlSchedule, ScheduleDraft } from '../../contract/schedule-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { nextId, numberOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, int, text } from '../row.ts'
import { draftOf, scheduleId, scheduleOf, timingOf } from './schedule-row.ts'

export type Adding = { readonly draft: ScheduleDraft; readonly actor: string }

/** @throws PlaneRefusal bad_request for a wrong timing, conflict for a name that is taken */
export function* addSchedule(context: PlaneContext, { draft, actor }: Adding): Command<ControlSchedule> {
  const now = context.now()
  const next = nextDue(timingOf(draft, now), now)
  const id = yield* nextId('schedules')
  const row = yield* first(
    `INSERT INTO schedules (id, name, draft, enabled, next_at, created_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING *`,
    [id, draft.name, JSON.stringify(draft), draft.enabled ? 1 : 0, draft.enabled ? (next ?? null) : null, now],
  )
  if (!row) throw new PlaneRefusal('conflict', `there is a schedule "${draft.name}" already`)
  yield* recordSchedule(context, { type: 'schedule.added', actor, row })
  return scheduleOf(row)
}

export type Changing = { readonly id: string; readonly actor: string }

/** What was due while a schedule was disabled is not caught up. */
export function* enableSchedule(
  context: PlaneContext,
  { id, actor, enabled }: Changing & { readonly enabled: boolean },
): Command<ControlSchedule> {
  const row = yield* lockSchedule(context, id)
  if (int(row, 'enabled') === (enabled ? 1 : 0)) return scheduleOf(row)
  const next = enabled ? (nextDue(timingOf(draftOf(row), int(row, 'created_at')), context.now()) ?? null) : null
  const changed = yield* first('UPDATE schedules SET enabled = ?, next_at = ? WHERE id = ? RETURNING *', [
    enabled ? 1 : 0,
    next,
    int(row, 'id'),
  ])
  yield* recordSchedule(context, { type: enabled ? 'schedule.enabled' : 'schedule.disabled', actor, row })
  return scheduleOf(changed ?? row)
}

export function* removeSchedule(context: PlaneContext, { id, actor }: Changing): Command<void> {
  const row = yield* lockSchedule(context, id)
  yield ['DELETE FROM fired WHERE schedule_id = ?', [int(row, 'id')]]
  yield ['DELETE FROM schedules WHERE id = ?', [int(row, 'id')]]
  yield* recordSchedule(context, { type: 'schedule.removed', actor, row })
}

/** @param id SCHED-001, or its name. @throws PlaneRefusal not_found */
export function* lockSchedule({ dialect }: PlaneContext, id: string): Command<Row> {
  const number = /^SCHED-\d{1,15}$/.test(id) ? numberOf(id) : 0
  const row =
    (yield* first(`SELECT * FROM schedules WHERE id = ?${dialect.forUpdate}`, [number])) ??
    (yield* first(`SELECT * FROM schedules WHERE name = ?${dialect.forUpdate}`, [id]))
  if (!row) throw new PlaneRefusal('not_found', `there is no schedule "${id}"`)
  return row
}

type Happening = { readonly type: string; readonly actor: string; readonly row: Row }

function* recordSchedule(context: PlaneContext, { type, actor, row }: Happening): Command<void> {
  const data = { schedule_id: scheduleId(int(row, 'id')), name: text(row, 'name') }
  yield* recordEvent(context, { type, actor, role: draftOf(row).task.role, data })
}
