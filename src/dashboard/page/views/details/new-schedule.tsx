/** Adds a schedule: what is to be done, and when. */

import { useState } from 'preact/hooks'
import { call } from '../../net/api.ts'
import { Field, filled } from '../../parts/fields.tsx'
import { attempt, notice } from '../../state.ts'

const kinds = {
  cron: { name: 'At set times (cron)', example: '0 9 * * mon-fri', help: 'Minute, hour, day, month, weekday; or @daily' },
  every: { name: 'At an interval', example: '2h', help: 'Such as 30m, 2h, 1h30m or 1d, from now on' },
  at: { name: 'Once', example: 'in 20m', help: 'Such as "in 20m", "18:30" or "2026-12-24 09:00"' },
} as const
type Kind = keyof typeof kinds

const zones = Intl.supportedValuesOf('timeZone')
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone

export function NewSchedule({ added }: { readonly added: () => void }) {
  const [kind, setKind] = useState<Kind>('cron')
  const { example, help } = kinds[kind]
  async function add(form: HTMLFormElement): Promise<void> {
    const { when, ...rest } = filled(form)
    const done = await attempt(() => call('POST', '/schedules', { ...rest, [kind]: when }))
    if (!done) return
    notice.value = { text: `Added: ${rest.name}` }
    form.reset()
    added()
  }
  return (
    <section aria-labelledby="add-title">
      <h2 id="add-title">Add a schedule</h2>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void add(event.currentTarget)
        }}
      >
        <Field id="plan-message" label="What the agent is to do">
          <textarea id="plan-message" name="message" rows={2} required />
        </Field>
        <div class="fields">
          <Field id="plan-name" label="Name" help="Letters, digits, - and _">
            <input id="plan-name" name="name" required aria-describedby="plan-name-help" />
          </Field>
          <Field id="plan-kind" label="How often">
            <select id="plan-kind" value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
              {Object.entries(kinds).map(([value, { name }]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </select>
          </Field>
          <Field id="plan-when" label="When" help={help}>
            <input id="plan-when" name="when" class="mono" required placeholder={example} aria-describedby="plan-when-help" />
          </Field>
          <Field id="plan-zone" label="Time zone">
            <input id="plan-zone" name="zone" list="plan-zones" defaultValue={ownZone} />
          </Field>
        </div>
        <datalist id="plan-zones">
          {zones.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <details>
          <summary>Check, answer, missed times</summary>
          <Choices />
        </details>
        <button type="submit" class="main">
          Add
        </button>
      </form>
    </section>
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
      <Field id="plan-missed" label="Times when nothing ran">
        <select id="plan-missed" name="missed">
          <option value="run-once">One run for all of them</option>
          <option value="skip">No run</option>
          <option value="run-all">A run for each</option>
        </select>
      </Field>
      <Field id="plan-conversation" label="Conversation">
        <select id="plan-conversation" name="conversation">
          <option value="new">A new one each time</option>
          <option value="same">Always the same</option>
        </select>
      </Field>
    </div>
  )
}
