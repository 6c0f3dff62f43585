/** Adds, changes, pauses and removes schedules, and says when they are due. */

import { createId } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import type { Memory } from '../../memory/memory.ts'
import { createScheduleStore, type FiredTable, type ScheduleRow, type ScheduleStore } from '../../memory/schedule-store.ts'
import type { Setup } from '../api.ts'
import type { LocalScheduler, Schedules } from '../contract/schedules-api.ts'
import { FailureError } from '../failure.ts'
import { changedDefinition, definitionOf } from './schedule-definition.ts'
import { runViewOf, viewOf } from './schedule-view.ts'

export type SchedulesOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'redactor' | 'context'>
  readonly store: ScheduleStore
  readonly now: () => number
}

/** Opens the schedules of a home; `committed` is called when a run was written. */
export function openSchedules(setup: SchedulesOptions['setup'], { store }: Pick<Memory, 'store'>, committed = () => {}): Schedules {
  return createSchedules({ setup, store: tellRuns(createScheduleStore(store, Date.now), committed), now: Date.now })
}

export function createSchedules({ setup, store, now }: SchedulesOptions): Schedules {
  const { schedules, fired, lease } = store
  const local: { scheduler?: LocalScheduler | undefined } = {}

  /** @throws FailureError `usage` that names the nearest schedule */
  function rowOf(name: string): ScheduleRow {
    const found = schedules.named(name)
    if (found) return found
    const names = schedules.list().map((each) => each.name)
    const advice = didYouMean(name, names) || (names.length === 0 ? '; there are none yet' : '; see: braidclaw schedule list')
    throw new FailureError('usage', `no schedule "${name}"${advice}`)
  }

  const view = (row: ScheduleRow) => viewOf(row, { now: now(), last: fired.last(row.id, 1)[0] })
  const shown = (name: string) => view(rowOf(name))
  /** Wakes the scheduler, because the database reports only changes of other processes. */
  const changed = (id: string) => {
    local.scheduler?.wake()
    return shown(id)
  }

  /** @throws FailureError `usage` */
  function assertFree(name: string): void {
    if (schedules.named(name))
      throw new FailureError('usage', `there is a schedule "${name}" already; choose another name, or remove it first`)
  }

  return {
    store,
    list: () => schedules.list().map(view),
    show: shown,
    runs: (name, limit) => fired.last(rowOf(name).id, limit).map(runViewOf),
    add(newSchedule, accept) {
      const at = now()
      const definition = definitionOf(newSchedule, { setup, now: at })
      accept?.(definition)
      assertFree(definition.name)
      const id = createId('schedule', crypto.getRandomValues(new Uint8Array(10)))
      if (!schedules.add({ ...definition, id, state: 'active', why: '', checked: at, failures: 0, created: at }))
        assertFree(definition.name)
      return changed(id)
    },
    change(name, change) {
      const row = rowOf(name)
      const at = now()
      const definition = changedDefinition(row, change, { setup, now: at })
      if (definition.name !== row.name) assertFree(definition.name)
      const isRetimed = change.timing !== undefined || change.zone !== undefined
      store.transaction(() => {
        schedules.change(row.id, definition, isRetimed ? at : row.checked)
        if (isRetimed && row.state === 'done') schedules.setState(row.id, 'active', { checked: at })
      })
      return changed(row.id)
    },
    pause(name, why = 'paused by hand') {
      const row = rowOf(name)
      if (row.state === 'done') throw new FailureError('usage', `schedule "${row.name}" is done: its only time has passed`)
      schedules.setState(row.id, 'paused', { why, checked: row.checked })
      return changed(row.id)
    },
    resume(name) {
      const row = rowOf(name)
      if (row.state === 'done')
        throw new FailureError('usage', `schedule "${row.name}" is done: its only time has passed; run it now, or add another`)
      if (row.state === 'paused') schedules.setState(row.id, 'active', { checked: now() })
      return changed(row.id)
    },
    remove(name) {
      const found = shown(name)
      schedules.remove(found.id)
      return found
    },
    runNow(name) {
      const { id } = rowOf(name)
      if (!local.scheduler) throw new FailureError('error', 'this process runs no schedules')
      return local.scheduler.start(id)
    },
    isServed: () => lease.holder(now()) !== undefined,
    attach(scheduler) {
      local.scheduler = scheduler
    },
  }
}

/** Reports the begin and end of a run at once to the followers of a home's events: `committed` reads the journal after the transaction. */
export function tellRuns(store: ScheduleStore, committed: () => void): ScheduleStore {
  const { fired } = store
  const after = <Value>(value: Value): Value => {
    committed()
    return value
  }
  const fire: FiredTable['fire'] = (firing) => after(fired.fire(firing))
  const end: FiredTable['end'] = (key, how) => after(fired.end(key, how))
  return { ...store, fired: { ...fired, fire, end } }
}
