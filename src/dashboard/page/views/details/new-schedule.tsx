/** Adds a schedule: what is to be done, and when. */

import { call } from '../../net/api.ts'
import { Field } from '../../parts/fields.tsx'
import { MissedField, ScheduleForm } from '../../parts/schedule-form.tsx'

export function NewSchedule({ added }: { readonly added: () => void }) {
  const message = (
    <Field id="plan-message" label="What the agent is to do">
      <textarea id="plan-message" name="message" rows={2} required />
    </Field>
  )
  return (
    <ScheduleForm
      kinds={['cron', 'every', 'at']}
      nameHelp="Letters, digits, - and _"
      head={message}
      send={(fields) => call('POST', '/schedules', fields)}
      added={added}
    >
      <details>
        <summary>Check, answer, missed times</summary>
        <Choices />
      </details>
    </ScheduleForm>
  )
}

function Choices() {
  return (
    <div class="fields">
      <Field id="plan-check" label="Good only when this succeeds" help="A command; it runs in the sandbox and changes nothing">
        <input id="plan-check" name="check" class="mono" placeholder="test -s report.md" aria-describedby="plan-check-help" />
      </Field>
      <Field id="plan-channel" label="Answer to the channel" help="Such as discord or fifo">
        <input id="plan-channel" name="channel" aria-describedby="plan-channel-help" />
      </Field>
      <Field id="plan-to" label="Where on that channel">
        <input id="plan-to" name="to" />
      </Field>
      <MissedField noun="run" />
      <Field id="plan-conversation" label="Conversation">
        <select id="plan-conversation" name="conversation">
          <option value="new">A new one each time</option>
          <option value="same">Always the same</option>
        </select>
      </Field>
    </div>
  )
}
