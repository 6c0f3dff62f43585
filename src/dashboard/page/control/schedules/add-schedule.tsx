/** Adds a schedule: when it is due, and which task it makes. */

import { Field } from '../../parts/fields.tsx'
import { MissedField, ScheduleForm } from '../../parts/schedule-form.tsx'
import { roles } from '../control-state.ts'
import { plane } from '../net/plane.ts'
import { priorities } from '../parts/task-words.ts'

export function AddSchedule({ added }: { readonly added: () => void }) {
  return (
    <ScheduleForm kinds={['every', 'cron']} nameHelp="Letters, digits, and . _ -" send={send} added={added}>
      <TaskFields />
      <div class="fields">
        <MissedField noun="task" />
        <Field id="plan-overlap" label="While the task before runs">
          <select id="plan-overlap" name="overlap">
            <option value="skip">No new task</option>
            <option value="allow">A new task</option>
          </select>
        </Field>
      </div>
    </ScheduleForm>
  )
}

function send({ title, role, priority, description, zone, ...schedule }: { readonly [name: string]: string }): Promise<unknown> {
  const task = { title, role, priority, ...(description === undefined ? {} : { description }) }
  return plane('POST', 'schedules', { ...schedule, ...(zone === undefined ? {} : { timezone: zone }), task })
}

function TaskFields() {
  return (
    <>
      <Field id="plan-title" label="Title of the task">
        <input id="plan-title" name="title" class="wide" required maxLength={500} />
      </Field>
      <p />
      <Field id="plan-description" label="Description">
        <textarea id="plan-description" name="description" rows={3} maxLength={65_536} />
      </Field>
      <div class="fields">
        <Field id="plan-role" label="Role">
          <input id="plan-role" name="role" required maxLength={64} list="plan-roles" />
        </Field>
        <Field id="plan-priority" label="Priority">
          <select id="plan-priority" name="priority">
            {priorities.map((each) => (
              <option key={each} value={each} selected={each === 'medium'}>
                {each}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <datalist id="plan-roles">
        {roles.value.map((role) => (
          <option key={role} value={role} />
        ))}
      </datalist>
    </>
  )
}
