/** Answers "which tasks are made by the clock": each schedule with its next time, and a way to add, enable, disable or remove one. */

import type { ControlSchedule } from '../../../../control/contract/schedule-shapes.ts'
import { About } from '../../parts/fields.tsx'
import { Loaded, useLoadedOn } from '../../parts/loaded.tsx'
import { Empty, Facts, Tag } from '../../parts/small.tsx'
import { doing } from '../actions.tsx'
import { listenToPlane, plane } from '../net/plane.ts'
import { resumed } from '../net/plane-live.ts'
import { confirmed } from '../parts/ask.tsx'
import { At, IdLink, PriorityTag } from '../parts/bits.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { AddSchedule } from '../schedules/add-schedule.tsx'

export function HeartbeatSchedules(_: { readonly rest: string }) {
  const found = useLoadedOn(
    listenToPlane,
    () => plane<{ schedules: readonly ControlSchedule[] }>('GET', 'schedules'),
    'schedules',
    ({ type }) => type.startsWith('schedule.') || type === resumed.type,
  )
  return (
    <>
      <h1>Schedules</h1>
      <About>At its time a schedule makes a task for a role; an agent of the role takes it like any other.</About>
      <Loaded from={found}>
        {({ schedules }) =>
          schedules.length === 0 ? (
            <Empty>Nothing is scheduled.</Empty>
          ) : (
            schedules.map((schedule) => <Card key={schedule.schedule_id} schedule={schedule} changed={found.again} />)
          )
        }
      </Loaded>
      <AddSchedule added={found.again} />
    </>
  )
}

const missedWords = { 'run-once': 'one task for all of them', skip: 'none', 'run-all': 'a task for each' } as const

function Card({ schedule, changed }: { readonly schedule: ControlSchedule; readonly changed: () => void }) {
  const { schedule_id, name, cron, every, timezone, missed, overlap, task, enabled, next_at, last_fired_at, last_task_id } = schedule
  const path = `schedules/${encodeURIComponent(schedule_id)}`
  async function toggle(): Promise<void> {
    await doing(`${enabled ? 'Disabled' : 'Enabled'}: ${name}`, () => plane('POST', `${path}/${enabled ? 'disable' : 'enable'}`, {}))
    changed()
  }
  async function remove(): Promise<void> {
    const body = <p>The tasks that it made stay.</p>
    if (!(await confirmed({ title: `Remove ${name}?`, body, act: 'Remove the schedule', isDangerous: true }))) return
    await doing(`Removed: ${name}`, () => plane('DELETE', path))
    changed()
  }
  return (
    <article class="card" aria-label={`Schedule ${name}`}>
      <div class="row spread">
        <div class="row">
          <h2 class="name">{name}</h2>
          <Tag kind={enabled ? 'good' : ''}>{enabled ? 'enabled' : 'disabled'}</Tag>
        </div>
        <span class="quiet small">{cron === undefined ? `every ${every}` : `${cron}, ${timezone}`}</span>
      </div>
      <p class="breaks">
        <PlainText text={task.title} /> <span class="quiet small">for {task.role}</span> <PriorityTag of={task.priority} />
      </p>
      <Facts
        of={[
          ['Next', enabled ? <At time={next_at} /> : 'never while it is disabled'],
          ['Last', <At time={last_fired_at} otherwise="not yet" />],
          ...(last_task_id === null ? [] : [['Its task', <IdLink id={last_task_id} />] as const]),
          ['Missed times', missedWords[missed]],
          ['While the task before runs', overlap === 'skip' ? 'no new task' : 'a new task'],
        ]}
      />
      <div class="row actions">
        <button type="button" onClick={() => void toggle()}>
          {enabled ? 'Disable' : 'Enable'}
          <span class="hidden"> {name}</span>
        </button>
        <button type="button" onClick={() => void remove()}>
          Remove<span class="hidden"> {name}</span>
        </button>
      </div>
    </article>
  )
}
