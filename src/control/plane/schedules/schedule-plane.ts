/** Serves schedules to operators. */

import { signatureOf } from '../../contract/caller.ts'
import type { SchedulePlane } from '../../contract/plane.ts'
import { onlyOperator } from '../../contract/rights.ts'
import type { ControlSchedule } from '../../contract/schedule-shapes.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { addSchedule, enableSchedule, removeSchedule } from './change-schedule.ts'
import { scheduleOf } from './schedule-row.ts'

export function createSchedulePlane(context: PlaneContext): SchedulePlane {
  const { store } = context
  return {
    async list(caller) {
      onlyOperator(caller, 'list schedules')
      return await store.read(listSchedules)
    },
    async add(caller, draft) {
      const actor = signatureOf(onlyOperator(caller, 'add schedules'))
      return await store.write(() => addSchedule(context, { draft, actor }))
    },
    async setEnabled(caller, id, enabled) {
      const actor = signatureOf(onlyOperator(caller, 'change schedules'))
      return await store.write(() => enableSchedule(context, { id, actor, enabled }))
    },
    async remove(caller, id) {
      const actor = signatureOf(onlyOperator(caller, 'remove schedules'))
      await store.write(() => removeSchedule(context, { id, actor }))
    },
  }
}

function* listSchedules(): Command<readonly ControlSchedule[]> {
  return (yield ['SELECT * FROM schedules ORDER BY id']).map(scheduleOf)
}
