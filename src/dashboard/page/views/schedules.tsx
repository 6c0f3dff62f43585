/** Answers "what happens by itself, and when": each schedule with its next times and how its last run ended. */

import { call } from '../net/api.ts'
import { About } from '../parts/fields.tsx'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Empty } from '../parts/small.tsx'
import { may } from '../state.ts'
import { NewSchedule } from './details/new-schedule.tsx'
import { ScheduleCard } from './details/schedule-card.tsx'
import type { Schedule } from './details/schedule-shapes.ts'

export function Schedules(_: { readonly rest: string }) {
  const list = useLoaded(
    () => call<{ schedules: readonly Schedule[] }>('GET', '/schedules'),
    'schedules',
    ({ event }) => event.type.startsWith('schedule_'),
  )
  return (
    <>
      <h1>Schedules</h1>
      <About>
        See what the agent does by itself: when it is due, and how it went. Nobody is asked during such a run, so what needs a yes is
        refused.
      </About>
      <Loaded from={list}>
        {({ schedules }) =>
          schedules.length === 0 ? (
            <Empty>Nothing is scheduled.</Empty>
          ) : (
            schedules.map((schedule) => <ScheduleCard key={schedule.id} schedule={schedule} changed={list.again} />)
          )
        }
      </Loaded>
      {may('admin') && <NewSchedule added={list.again} />}
    </>
  )
}
