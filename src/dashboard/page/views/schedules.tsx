/** Answers "what happens by itself, and when": each schedule with its next times and how its last run ended. */

import { call } from '../net/api.ts'
import { About, Field } from '../parts/fields.tsx'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { MissedField, ScheduleForm } from '../parts/schedule-form.tsx'
import { Empty } from '../parts/small.tsx'
import { may } from '../state.ts'
import type { Schedule } from './details/schedule-card.tsx'
import { ScheduleCard } from './details/schedule-card.tsx'

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

/** Adds a schedule: what is to be done, and when. */
function NewSchedule({ added }: { readonly added: () => void }) {
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
