/** Answers "which tasks are made at set times": each schedule with its next time, and a way to add, enable, disable or remove one. */

import type { ControlSchedule } from '../../../../control/contract/task-shapes.ts'
import { About, Field, InputField, SelectField } from '../../parts/fields.tsx'
import { LoadedList } from '../../parts/loaded.tsx'
import { MissedField, ScheduleForm } from '../../parts/schedule-form.tsx'
import { Facts, Proposals, Tag } from '../../parts/small.tsx'
import { doing } from '../../state.ts'
import { roles } from '../control-state.ts'
import { plane, resumed, usePlane } from '../net/plane-live.ts'
import { confirmed } from '../parts/ask.tsx'
import { At, IdLink, NamedButton, PriorityTag } from '../parts/bits.tsx'
import { PlainText, priorities } from '../parts/plain-text.tsx'

export function HeartbeatSchedules(_: { readonly rest: string }) {
  const found = usePlane<{ schedules: readonly ControlSchedule[] }>(
    'schedules',
    ({ type }) => type.startsWith('schedule.') || type === resumed.type,
  )
  return (
    <>
      <h1>Schedules</h1>
      <About>At its set time a schedule makes a task for a role; an agent of the role takes it like any other task.</About>
      <LoadedList from={found} of={({ schedules }) => schedules} empty="Nothing is scheduled.">
        {(schedule) => <Card key={schedule.schedule_id} schedule={schedule} changed={found.again} />}
      </LoadedList>
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
    const body = <p>The tasks that it made remain.</p>
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
          last_task_id !== null && ['Its task', <IdLink id={last_task_id} />],
          ['Missed times', missedWords[missed]],
          ['While the previous task runs', overlap === 'skip' ? 'no new task' : 'a new task'],
        ]}
      />
      <div class="row actions">
        <NamedButton word={enabled ? 'Disable' : 'Enable'} name={name} on={toggle} />
        <NamedButton word="Remove" name={name} on={remove} />
      </div>
    </article>
  )
}

const overlaps = [
  ['skip', 'No new task'],
  ['allow', 'A new task'],
] as const

/** Adds a schedule: when it is due, and which task it makes. */
function AddSchedule({ added }: { readonly added: () => void }) {
  return (
    <ScheduleForm kinds={['day', 'weekday', 'every', 'cron']} nameHelp="Letters, digits, and . _ -" send={send} added={added}>
      <TaskFields />
      <div class="fields">
        <MissedField noun="task" />
        <SelectField id="plan-overlap" label="While the previous task runs" name="overlap" of={overlaps} />
      </div>
    </ScheduleForm>
  )
}

function send({ title, role, priority, description, zone, ...schedule }: { readonly [name: string]: string }): Promise<unknown> {
  const task = { title, role, priority, description }
  return plane('POST', 'schedules', { ...schedule, timezone: zone, task })
}

function TaskFields() {
  return (
    <>
      <InputField id="plan-title" label="Title of the task" name="title" class="wide" required maxLength={500} />
      <p />
      <Field id="plan-description" label="Description">
        <textarea id="plan-description" name="description" rows={3} maxLength={65_536} />
      </Field>
      <div class="fields">
        <InputField id="plan-role" label="Role" name="role" required maxLength={64} list="plan-roles" />
        <SelectField id="plan-priority" label="Priority" name="priority" of={priorities} first="medium" />
      </div>
      <Proposals id="plan-roles" of={roles.value} />
    </>
  )
}
