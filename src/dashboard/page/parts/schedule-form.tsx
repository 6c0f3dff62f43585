/** The form that adds a schedule: its name, when it is due in which zone, and what the page puts around these. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { attempt, notice } from '../state.ts'
import { Field, filled, submitBy } from './fields.tsx'
import { Part, Proposals } from './small.tsx'

const timings = {
  day: { name: 'Every day at', example: '09:00', help: 'Hour and minute in the time zone', days: '*' },
  weekday: { name: 'Monday to Friday at', example: '09:00', help: 'Hour and minute in the time zone', days: 'mon-fri' },
  cron: { name: 'Advanced: cron', example: '0 9 * * mon-fri', help: 'Minute, hour, day, month, weekday; or @daily' },
  every: { name: 'At an interval', example: '2h', help: 'Such as 30m, 2h, 1h30m or 1d, from now on' },
  at: { name: 'Once', example: 'in 20m', help: 'Such as "in 20m", "18:30" or "2026-12-24 09:00"' },
} as const
type Kind = keyof typeof timings

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone
const zones = Intl.supportedValuesOf('timeZone')

type ScheduleFormProps = {
  /** The ways in which it may be due; the first is chosen. */
  readonly kinds: readonly [Kind, ...Kind[]]
  readonly nameHelp: string
  /** Stands above the name. */
  readonly head?: ComponentChildren
  readonly children: ComponentChildren
  /** Gets the filled fields by name; when it is due has the name of its kind. */
  readonly send: (fields: { readonly [name: string]: string }) => Promise<unknown>
  readonly added: () => void
}

export function ScheduleForm({ kinds, nameHelp, head, children, send, added }: ScheduleFormProps) {
  const [kind, setKind] = useState<Kind>(kinds[0])
  const { example, help, ...timing } = timings[kind]
  const days = 'days' in timing ? timing.days : undefined
  async function add(form: HTMLFormElement): Promise<void> {
    const { when = '', ...fields } = filled(form)
    const due = days === undefined ? { [kind]: when } : { cron: `${Number(when.slice(3, 5))} ${Number(when.slice(0, 2))} * * ${days}` }
    if (!(await attempt(() => send({ ...fields, ...due })))) return
    notice.value = { text: `Added: ${fields.name}` }
    form.reset()
    added()
  }
  return (
    <Part id="add-title" title="Add a schedule">
      <form class="card" onSubmit={submitBy(add)}>
        {head}
        <div class="fields">
          <Field id="plan-name" label="Name" help={nameHelp}>
            <input id="plan-name" name="name" required maxLength={64} aria-describedby="plan-name-help" />
          </Field>
          <Field id="plan-kind" label="How often">
            <select id="plan-kind" value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
              {kinds.map((each) => (
                <option key={each} value={each}>
                  {timings[each].name}
                </option>
              ))}
            </select>
          </Field>
          <Field id="plan-when" label="When" help={help}>
            {days === undefined ? (
              <input key="text" id="plan-when" name="when" class="mono" required placeholder={example} aria-describedby="plan-when-help" />
            ) : (
              <input key="time" id="plan-when" name="when" type="time" required defaultValue={example} aria-describedby="plan-when-help" />
            )}
          </Field>
          <Field id="plan-zone" label="Time zone">
            <input id="plan-zone" name="zone" list="plan-zones" defaultValue={ownZone} />
          </Field>
        </div>
        <Proposals id="plan-zones" of={zones} />
        {children}
        <button type="submit" class="main">
          Add
        </button>
      </form>
    </Part>
  )
}

/** `noun`: what a time makes, a run or a task. */
export function MissedField({ noun }: { readonly noun: string }) {
  return (
    <Field id="plan-missed" label="Missed times">
      <select id="plan-missed" name="missed">
        <option value="run-once">One {noun} for all of them</option>
        <option value="skip">No {noun}</option>
        <option value="run-all">A {noun} for each</option>
      </select>
    </Field>
  )
}
