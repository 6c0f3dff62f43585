/** Tells those who follow the events of a home at once when a run of a schedule begins or ends. */

import type { FiredTable } from '../../memory/schedules/fired-table.ts'
import type { ScheduleStore } from '../../memory/schedules/schedule-store.ts'

/** `committed` looks at the journal when the transaction is over. */
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
